"""Links from an alert to its run or job."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from noonmark.store.alerts.deliveries import Delivery

FIELDS: Final = ("run_id", "job_id", "namespace")


class Links:
    """Fills the operator's pattern; without one, returns the path in the API."""

    def __init__(self, pattern: str) -> None:
        """Take a pattern with `{run_id}`, `{job_id}` and `{namespace}`; "" for none."""
        self._pattern = pattern

    def of(self, alert: Delivery) -> str:
        """Return the link to an alert's run, or else to its job; "" if it has neither."""
        if self._pattern and alert.run_id is not None:
            link = self._pattern
            # Not `format`, because the pattern may contain other braces.
            for name in FIELDS:
                link = link.replace(f"{{{name}}}", quote(str(getattr(alert, name) or ""), safe=""))
            return link
        if alert.run_id is not None:
            return f"/v1/runs/{alert.run_id}/logs"
        return f"/v1/jobs/{alert.job_id}" if alert.job_id is not None else ""
