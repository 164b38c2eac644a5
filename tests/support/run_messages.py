"""Run messages as anybody reads them, without the product's own code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MEMBERS = ("run_id", "job_id", "namespace", "scheduled_for", "fence", "job_version")


def runs_of(event: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the runs of a message with one run or with several, as documents.

    Raises:
        KeyError, TypeError, ValueError: it is no run message.
    """
    data = event["data"]
    if event["type"] == "noonmark.run.queued.v1":
        return [{name: data[name] for name in _MEMBERS}]
    return [dict(zip(_MEMBERS, run, strict=True)) for run in data["runs"]]
