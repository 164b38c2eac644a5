"""Sends alerts to Alertmanager (API v2), every minute, because it drops alerts that are not repeated."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import orjson

from noonmark.alerting.http_post import DeliveryRefusedError, Poster
from noonmark.alerting.links import Links
from noonmark.core.monitoring.alerts import AlertChange, AlertChannel
from noonmark.store.alerts.deliveries import AGAIN_SECONDS, Delivery

LASTS: Final = timedelta(seconds=5 * AGAIN_SECONDS)
"""How long an alert stays open in Alertmanager after the last message. A restart of the observer must not
resolve it. Prometheus does the same, with four of its intervals."""

_MOST_LABEL: Final = 200
_MOST_TEXT: Final = 2000
_BAD_REQUEST: Final = 400
_ONE_BY_ONE_SECONDS: Final = 30.0


class Alertmanager:
    """Posts many alerts in one call."""

    name = AlertChannel.ALERTMANAGER.value
    reminded = True
    most = 100

    def __init__(self, url: str, links: Links, poster: Poster) -> None:
        """Take the URL of Alertmanager, without the path of its API."""
        self._url = f"{url.rstrip('/')}/api/v2/alerts"
        self._links = links
        self._poster = poster

    def send(self, deliveries: Sequence[Delivery], taken_at: float) -> Sequence[tuple[Delivery, str]]:
        """Post the deliveries together; if Alertmanager refuses the call as invalid, post them one by one."""
        del taken_at
        alerts = [alert_of(one, self._links.of(one)) for one in deliveries]
        try:
            self._poster.call(self._url, body=orjson.dumps(alerts, option=orjson.OPT_UTC_Z))
        except DeliveryRefusedError as error:
            if error.status == _BAD_REQUEST and len(deliveries) > 1:
                return self._one_by_one(deliveries)
            return [(one, str(error)) for one in deliveries]
        return [(one, "") for one in deliveries]

    def _one_by_one(self, deliveries: Sequence[Delivery]) -> Sequence[tuple[Delivery, str]]:
        until = time.monotonic() + _ONE_BY_ONE_SECONDS
        results: list[tuple[Delivery, str]] = []
        for one in deliveries:
            # Stop before the lease ends and another observer gets them.
            late = time.monotonic() > until
            results += [(one, "not sent: the time limit was reached")] if late else self.send([one], 0.0)
        return results

    def close(self) -> None:
        """Do nothing: no connection stays open between calls."""


def alert_of(one: Delivery, link: str) -> dict[str, Any]:
    """Return Alertmanager's form of an alert. Its labels identify it there, so they must not change."""
    labels = {
        "alertname": f"Noonmark{one.kind.capitalize()}",
        "kind": one.kind,
        "severity": one.severity,
        "service": "noonmark",
        "namespace": one.namespace or "",
        "job": one.job_name or (str(one.job_id) if one.job_id else ""),
        # The observer's identity of the alert. The run is not a label: it is an example that may change while
        # the alert is open.
        "fingerprint": hashlib.sha256(one.fingerprint.encode()).hexdigest()[:16],
    }
    annotations = {
        "summary": one.summary[:_MOST_TEXT],
        "link": link[:_MOST_TEXT],
        "run_id": str(one.run_id or ""),
        **{
            name: str(value)[:_MOST_TEXT]
            for name, value in list(one.details.items())[:20]
            if isinstance(value, str | int | float) and name.isidentifier() and name.isascii()
        },
    }
    over = one.change == AlertChange.RESOLVED
    alert: dict[str, Any] = {
        "labels": {name: value[:_MOST_LABEL] for name, value in labels.items() if value},
        "annotations": {name: value for name, value in annotations.items() if value},
        "startsAt": one.raised_at,
        "endsAt": one.resolved_at if over else one.now + LASTS,
    }
    if link.startswith(("http://", "https://")):
        alert["generatorURL"] = link
    return alert
