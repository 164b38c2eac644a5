"""What the watchdog makes of what others left behind."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from noonmark.watchdog.process_checks import StalledHeads, process_problem

STALE = 60.0


@dataclass(frozen=True)
class Seen:
    service: str = "trigger"
    seen_seconds: float = 1.0
    progressed_seconds: float = 1.0
    stuck: str | None = None
    host: str = "node-1"
    pid: int = 7


@pytest.mark.parametrize(
    ("processes", "trouble"),
    [
        ([], "no process has reported"),
        ([Seen("dispatcher")], "no process has reported"),
        ([Seen()], ""),
        ([Seen(seen_seconds=61, progressed_seconds=61)], "no process has made progress for 61 s"),
        ([Seen(), Seen(seen_seconds=61, progressed_seconds=61)], ""),
        ([Seen(), Seen(progressed_seconds=59, stuck="claim: hangs")], ""),
        ([Seen(seen_seconds=-3600, progressed_seconds=-3600)], "no process has reported"),
        ([Seen(), Seen(seen_seconds=-3600, progressed_seconds=-3600)], ""),
        (
            [Seen(progressed_seconds=-3600, stuck="claim: hangs")],
            "no process has made progress since the clock was set back",
        ),
        (
            [Seen(), Seen(progressed_seconds=-3600, stuck="claim: hangs")],
            "a process on node-1 (pid 7) hangs: claim: hangs",
        ),
        (
            [Seen(), Seen(progressed_seconds=61, stuck="claim: hangs")],
            "a process on node-1 (pid 7) hangs: claim: hangs",
        ),
    ],
)
def test_a_service_makes_progress_while_one_of_its_processes_does_and_none_that_lives_stands(
    processes, trouble
):
    assert process_problem("trigger", processes, STALE) == trouble


def test_a_queue_whose_first_moves_is_served_however_long_it_is():
    heads = StalledHeads("due timer")

    found = [heads.problem({(0, 1): f"timer {n}"}, n * 50.0, STALE) for n in range(5)]

    assert found == [""] * 5


def test_a_queue_whose_first_stays_for_too_long_is_not():
    heads = StalledHeads("due timer")
    both = {(0, 1): "a", (3, 2): "b"}

    assert heads.problem(both, 0.0, STALE) == ""
    assert heads.problem(both, 60.0, STALE) == ""
    assert heads.problem({**both, (0, 1): "c"}, 61.0, STALE) == (
        "the first due timer of 1 queues has not been taken, the oldest for 61 s"
    )
    assert heads.problem({}, 62.0, STALE) == ""
    assert heads.problem(both, 63.0, STALE) == ""
