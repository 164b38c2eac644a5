"""Alerts in Alertmanager, by its API v2: told every minute, because it forgets what it does not hear."""

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
"""How long Alertmanager holds an alert for open after it last heard of it: a restart of the observer must not
resolve it. Prometheus does it likewise, with four of its intervals."""

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
        """Take the address of Alertmanager without the path of its API."""
        self._url = f"{url.rstrip('/')}/api/v2/alerts"
        self._links = links
        self._poster = poster

    def send(self, deliveries: Sequence[Delivery], taken_at: float) -> Sequence[tuple[Delivery, str]]:
        """Post them together; where one spoils the call for the others, one by one."""
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
        told: list[tuple[Delivery, str]] = []
        for one in deliveries:
            # Somebody else may take them when this lasts too long.
            late = time.monotonic() > until
            told += [(one, "no time was left for it")] if late else self.send([one], 0.0)
        return told

    def close(self) -> None:
        """Hold nothing between two calls."""


def alert_of(one: Delivery, link: str) -> dict[str, Any]:
    """Return an alert as Alertmanager takes it. Its labels are its identity there: equal while it is open."""
    labels = {
        "alertname": f"Noonmark{one.kind.capitalize()}",
        "kind": one.kind,
        "severity": one.severity,
        "service": "noonmark",
        "namespace": one.namespace or "",
        "job": one.job_name or (str(one.job_id) if one.job_id else ""),
        # What the observer takes for one and the same thing. Its run is no label: it is an example, which may
        # become another while the alert is open.
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
