"""Posts alerts as signed events, one by one, to a URL of the operator."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from noonmark.alerting.http_post import DeliveryRefusedError, Poster
from noonmark.alerting.links import Links
from noonmark.core.access.webhook_signature import read_secret, sign
from noonmark.core.monitoring.alerts import AlertChange, AlertChannel
from noonmark.schemas.events.alerts import TYPES
from noonmark.schemas.events.envelope import render_structured
from noonmark.schemas.events.published import SOURCE
from noonmark.store.alerts.deliveries import Delivery

_AT_ONCE: Final = 4


class Webhook:
    """Posts each change as a CloudEvent, signed as docs/webhooks.md describes."""

    name = AlertChannel.WEBHOOK.value
    reminded = False
    most = 16

    def __init__(self, url: str, secret: str, links: Links, poster: Poster) -> None:
        """Take the URL and the signing secret.

        Raises:
            SecretError: the secret does not have the form of one.
        """
        self._url = url
        self._keys = [read_secret(secret)]
        self._links = links
        self._poster = poster
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="webhook")

    def send(self, deliveries: Sequence[Delivery], taken_at: float) -> Sequence[tuple[Delivery, str]]:
        """Post the deliveries, each with its own time limit."""
        errors = self._threads.map(lambda one: self._post(one, taken_at), deliveries)
        return list(zip(deliveries, errors, strict=True))

    def close(self) -> None:
        """Release the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _post(self, one: Delivery, taken_at: float) -> str:
        body = event_of(one, self._links.of(one))
        # The database's time, so that receivers accept the signature even if this host's clock is wrong.
        timestamp = int(one.now.timestamp() + time.monotonic() - taken_at)
        headers = {
            "webhook-id": one.message_id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": sign(one.message_id, timestamp, body, self._keys),
            "Idempotency-Key": one.message_id,
        }
        try:
            self._poster.call(self._url, body=body, headers=headers)
        except DeliveryRefusedError as error:
            return str(error)
        return ""


def event_of(one: Delivery, link: str) -> bytes:
    """Return the event of a change: the one of the topic, plus the job's name and a link."""
    over = one.change == AlertChange.RESOLVED
    data: dict[str, Any] = {
        "alert_id": one.alert_id,
        "fingerprint": one.fingerprint,
        "kind": one.kind,
        "severity": one.severity,
        "namespace": one.namespace,
        "job_id": one.job_id,
        "job_name": one.job_name,
        "run_id": one.run_id,
        "summary": one.summary,
        "details": dict(one.details),
        "link": link or None,
        "raised_at": one.raised_at,
    }
    if over:
        data["resolved_at"] = one.resolved_at
    return render_structured(
        id=one.message_id,
        source=SOURCE,
        type=TYPES[AlertChange(one.change)],
        data=data,
        subject=str(one.alert_id),
        time=one.resolved_at if over else one.raised_at,
    )
