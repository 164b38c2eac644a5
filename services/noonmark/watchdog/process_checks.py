"""Whether a part makes progress, judged from what it left behind. Nothing here asks anybody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class ProcessStatus(Protocol):
    """What is known of a process (`noonmark.store.cluster.processes.Process`)."""

    @property
    def service(self) -> str:
        """Name of its service."""

    @property
    def host(self) -> str:
        """Where it runs."""

    @property
    def pid(self) -> int:
        """Its number there."""

    @property
    def stuck(self) -> str | None:
        """What stands still in it."""

    @property
    def seen_seconds(self) -> float:
        """Seconds since it said anything."""

    @property
    def progressed_seconds(self) -> float:
        """Seconds since all its loops went round."""


def process_problem(service: str, processes: Sequence[ProcessStatus], stale_seconds: float) -> str:
    """Say what is wrong with the processes of a service; "": nothing.

    One that is dead is not missed while another works. One that is alive and stands still is: it may own what
    no other will touch.
    """
    # A sign from the future was left before the clock was set back, and says nothing about now.
    mine = [one for one in processes if one.service == service and one.seen_seconds >= -stale_seconds]
    if not mine:
        return "no process of it says anything"
    ages = [one.progressed_seconds for one in mine if one.progressed_seconds >= -stale_seconds]
    if not ages:
        return "no process of it made progress since the clock was set back"
    if min(ages) > stale_seconds:
        return f"no process of it made progress for {min(ages):.0f} s"
    for one in mine:
        if one.seen_seconds <= stale_seconds < abs(one.progressed_seconds):
            why = one.stuck or "it does not say why"
            return f"a process on {one.host} (pid {one.pid}) stands still: {why}"
    return ""


class StalledHeads:
    """Remembers since when the first of each queue has been the same: then nobody takes from it."""

    def __init__(self, what: str) -> None:
        """Take what the queues hold, for the sentence."""
        self._what = what
        self._since: dict[tuple[int, ...], tuple[str, float]] = {}

    def problem(self, heads: Mapping[tuple[int, ...], str], now: float, stale_seconds: float) -> str:
        """Look at the heads as they are now; say which has stood for too long, or "".

        Args:
            heads: a mark of the first of each queue that has one, by queue.
            now: monotonic seconds of this look; looks are in order.
            stale_seconds: for how long one may stand.
        """
        since = {}
        for queue, mark in heads.items():
            known = self._since.get(queue)
            since[queue] = known if known is not None and known[0] == mark else (mark, now)
        self._since = since
        standing = {queue: now - at for queue, (_, at) in since.items() if now - at > stale_seconds}
        if not standing:
            return ""
        longest = max(standing.values())
        return (
            f"the first {self._what} of {len(standing)} queues is not taken, the longest for {longest:.0f} s"
        )
