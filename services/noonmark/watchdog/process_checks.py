"""Decides whether a service makes progress, from the rows that its processes wrote. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class ProcessStatus(Protocol):
    """The last report of a process (`noonmark.store.cluster.processes.Process`)."""

    @property
    def service(self) -> str:
        """The name of its service."""

    @property
    def host(self) -> str:
        """The host that it runs on."""

    @property
    def pid(self) -> int:
        """Its process id on that host."""

    @property
    def stuck(self) -> str | None:
        """Which of its loops hangs, and how."""

    @property
    def seen_seconds(self) -> float:
        """Seconds since its last report."""

    @property
    def progressed_seconds(self) -> float:
        """Seconds since all its loops had completed a round."""


def process_problem(service: str, processes: Sequence[ProcessStatus], stale_seconds: float) -> str:
    """Return what is wrong with the processes of a service, "" for nothing.

    A dead process is no problem while another works. A live process that hangs is one: it may own shards that
    no other process handles.
    """
    # A report from the future was written before the clock was set back, and says nothing about now.
    mine = [one for one in processes if one.service == service and one.seen_seconds >= -stale_seconds]
    if not mine:
        return "no process has reported"
    ages = [one.progressed_seconds for one in mine if one.progressed_seconds >= -stale_seconds]
    if not ages:
        return "no process has made progress since the clock was set back"
    if min(ages) > stale_seconds:
        return f"no process has made progress for {min(ages):.0f} s"
    for one in mine:
        if one.seen_seconds <= stale_seconds < abs(one.progressed_seconds):
            why = one.stuck or "it reports no reason"
            return f"a process on {one.host} (pid {one.pid}) hangs: {why}"
    return ""


class StalledHeads:
    """Tracks since when the first item of each queue has been the same: then no process takes it."""

    def __init__(self, what: str) -> None:
        """Take the name of the queues' items, for the sentence."""
        self._what = what
        self._since: dict[tuple[int, ...], tuple[str, float]] = {}

    def problem(self, heads: Mapping[tuple[int, ...], str], now: float, stale_seconds: float) -> str:
        """Record the current first items; return which has been there for too long, or "".

        Args:
            heads: identity of the first item of each queue that has one, by queue.
            now: monotonic seconds of this call; calls are in order.
            stale_seconds: how long a first item may stay.
        """
        since = {}
        for queue, mark in heads.items():
            known = self._since.get(queue)
            since[queue] = known if known is not None and known[0] == mark else (mark, now)
        self._since = since
        stalled = {queue: now - at for queue, (_, at) in since.items() if now - at > stale_seconds}
        if not stalled:
            return ""
        longest = max(stalled.values())
        return (
            f"the first {self._what} of {len(stalled)} queues has not been taken,"
            f" the oldest for {longest:.0f} s"
        )
