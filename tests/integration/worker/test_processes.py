"""Handlers in real child processes: warm, bounded, ended with all that they started, whatever they do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import psutil
import pytest
from tests.support import child_handlers, ends_at_requests
from tests.support.below import below, closed_without_trace
from tests.support.cluster import ROOT, wait_until
from tests.unit.worker.bench import PATIENCE, Bench

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.core.states import AttemptOutcome, DeliverySemantics, RunState
from noonmark.handlers import REGISTRY


def gone(pid: int) -> bool:
    """Whether a process is over; a zombie is not."""
    return not psutil.pid_exists(pid)


@pytest.fixture
def make() -> Iterator[Callable[..., Bench]]:
    usual = {"modules": [child_handlers.__name__], "registry": REGISTRY}
    with closed_without_trace(lambda **more: Bench(**{**usual, **more})) as create:
        yield create


@pytest.fixture
def bench(make: Callable[..., Bench]) -> Bench:
    return make(grace_seconds=0.2)


def result(bench: Bench, held: RunningAttempt):
    outcome = bench.end(held)
    assert outcome.state is RunState.SUCCEEDED, outcome.error
    return orjson.loads(outcome.result or "null")


def test_a_child_serves_one_run_after_the_other(bench):
    pids = {result(bench, bench.begin("child.pid")) for _ in range(5)}
    assert len(pids) == 1
    assert os.getpid() not in pids


def test_an_async_handler_runs_on_a_loop_of_the_child_with_its_whole_context(bench):
    held = bench.begin("child.asynchronous", payload={"n": [1, "ü"]})
    told = result(bench, held)
    assert told["payload"] == {"n": [1, "ü"]}
    assert told["key"] == f"{held.run.job_id}/2026-06-01T09:00:00.000000Z/schedule/"
    assert told["deadline"] > "2026-06-01T09:01:00"


@pytest.mark.parametrize("delivery", [DeliverySemantics.AT_LEAST_ONCE, DeliverySemantics.AT_MOST_ONCE])
def test_a_run_loses_nothing_by_an_idle_process_whose_end_is_not_yet_known(bench, monkeypatch, delivery):
    starts: list[RunningAttempt] = []
    start_clock = RunningAttempt.start_clock
    monkeypatch.setattr(RunningAttempt, "start_clock", lambda self: starts.append(self) or start_clock(self))
    pid = result(bench, bench.begin("child.pid"))
    # Its forks, the reapers, have the same arguments.
    supervisor = min(
        (p for p in below() if "supervisor.py" in " ".join(p.cmdline())), key=psutil.Process.create_time
    )
    supervisor.suspend()
    os.kill(pid, signal.SIGKILL)
    held = bench.begin("child.pid", delivery=delivery)
    bench.wait(lambda: held in starts, "the run to be given to the process")
    bench.wait(lambda: held.began_at == 0.0, "the process to be missed")
    supervisor.resume()

    assert result(bench, held) != pid
    assert starts.count(held) == 2


def test_a_run_whose_processes_all_end_before_it_begins_is_rejected(make):
    bench = make(modules=[ends_at_requests.__name__])
    outcome = bench.end(bench.begin("child.pid"))

    assert outcome.attempt_outcome is AttemptOutcome.REJECTED
    assert outcome.error == "each process that was to run the handler ended before it began"


def test_no_more_run_at_once_than_there_may_be_and_waiting_costs_no_time(make, tmp_path):
    bench = make(processes=1)
    first = bench.begin("child.waits", payload={"folder": str(tmp_path)})
    bench.wait((tmp_path / f"began-{first.run.id}").exists, "the first to begin")
    second = bench.begin("child.pid", timeout_seconds=5.0)
    bench.wait(lambda: second.key in bench.processes.waiting, "the second to wait")
    # Its turn has not come: there is no time that could be over.
    assert second.began_at == 0.0
    assert bench.executors.kinds.overdue(10**9, 0) == [first]
    (tmp_path / "go").touch()
    assert result(bench, second) == result(bench, first)
    assert second.began_at > first.began_at


@pytest.mark.parametrize(
    ("handler", "error"),
    [
        ("child.exits", "the handler's process ended with exit code 7 without an answer"),
        ("child.kills_itself", "the handler's process was killed by SIGKILL without an answer"),
        ("child.speaks_nonsense", "the handler's process was killed by SIGKILL without an answer"),
    ],
)
def test_a_process_that_ends_without_an_answer_fails_its_run_alone(make, handler, error):
    bench = make(processes=1)
    before = result(bench, bench.begin("child.pid"))
    outcome = bench.end(bench.begin(handler))
    assert (outcome.attempt_outcome, outcome.error) == (AttemptOutcome.FAILED, error)
    assert result(bench, bench.begin("child.pid")) != before


def test_last_words_are_kept(bench):
    outcome = bench.end(bench.begin("child.exits"))
    assert outcome.extras is not None
    assert outcome.extras.log is not None
    assert outcome.extras.log.stdout.text() == "last words\n"


def test_ten_megabytes_in_a_line_and_bytes_that_are_no_text_are_bounded_and_shown(bench):
    held = bench.begin("child.prints")
    outcome = bench.end(held)
    assert outcome.state is RunState.SUCCEEDED
    log = outcome.extras.log
    assert log.stdout.text() == "y" * 65536
    assert log.stderr.text() == "\ufffd\\x00 no text"
    assert log.dropped == 10_000_000 - 65536


def test_the_fork_of_a_handler_that_comes_back_answers_nothing(bench):
    held = bench.begin("child.forks")
    assert result(bench, held) > 0
    assert len([o for o in bench.outcomes if o.run.id == held.run.id]) == 1


def test_what_a_handler_leaves_running_ends_with_its_run(bench):
    child, left = result(bench, bench.begin("child.leaves"))
    assert gone(left)
    assert gone(child)


def test_a_run_past_its_limit_is_ended_and_may_clean_up(make, tmp_path):
    bench = make(grace_seconds=30)
    held = bench.begin("child.cleans_up", payload={"folder": str(tmp_path)}, timeout_seconds=0.3)
    outcome = bench.end(held)
    assert outcome.attempt_outcome is AttemptOutcome.TIMED_OUT
    assert gone(int((tmp_path / "began").read_text()))
    assert (tmp_path / "cleaned").exists()


def test_who_ignores_sigterm_is_killed_with_all_below_before_the_verdict(bench, tmp_path):
    held = bench.begin("child.deaf", payload={"folder": str(tmp_path)})
    bench.wait((tmp_path / "began").exists, "the handler to begin")
    pids = [int(pid) for pid in (tmp_path / "began").read_text().split()]
    bench.executors.cancel([held.key])
    assert bench.end(held).state is RunState.CANCELLED
    assert all(map(gone, pids))


def test_a_run_that_is_handed_back_is_over_when_nothing_of_it_is_left(make, tmp_path):
    bench = make(grace_seconds=30)
    held = bench.begin("child.deaf", payload={"folder": str(tmp_path)})
    bench.wait((tmp_path / "began").exists, "the handler to begin")
    pids = [int(pid) for pid in (tmp_path / "began").read_text().split()]
    assert bench.executors.children() == [held]
    bench.executors.release([held.key])
    assert bench.executors.are_ending([held.key])
    bench.executors.kill_children()
    bench.wait(lambda: not bench.executors.are_ending([held.key]), "the run to be over")
    assert all(map(gone, pids))
    assert bench.of(held) is None


def test_a_run_that_waits_for_its_turn_can_be_withdrawn_and_cancelled(make, tmp_path):
    bench = make(processes=1)
    first = bench.begin("child.waits", payload={"folder": str(tmp_path)})
    bench.wait((tmp_path / f"began-{first.run.id}").exists, "the first to begin")
    second, third = bench.begin("child.pid"), bench.begin("child.pid")
    bench.wait(lambda: len(bench.processes.waiting) == 2, "both to wait")
    assert bench.executors.withdraw() == [second, third]
    assert bench.executors.waiting_too_long(second.taken_at + 44) == []
    assert bench.executors.waiting_too_long(third.taken_at + 46) == [second, third]
    bench.executors.release([second.key])
    bench.executors.cancel([third.key])
    assert bench.end(third).state is RunState.CANCELLED
    (tmp_path / "go").touch()
    bench.end(first)
    assert bench.of(second) is None


def test_errors_and_orders_of_a_handler_arrive_as_they_would_from_a_thread(bench):
    failed = bench.end(bench.begin("child.raises"))
    snoozed = bench.end(bench.begin("child.snoozes"))
    assert failed.error.startswith("ConnectionError: no line (in raises, line ")
    assert (failed.state, failed.reason) == (RunState.DEAD, "retries_exhausted")
    assert (snoozed.attempt_outcome, snoozed.error) == (AttemptOutcome.SNOOZED, "too early")
    assert snoozed.retry_seconds == 30


def test_what_a_handler_tells_its_context_reaches_the_worker(make):
    bench = make(environment={"NOONMARK_SECRET_TESTS__TOKEN": "hunter2-hunter2"})
    held = bench.begin("child.tells")
    outcome = bench.end(held)
    assert outcome.state is RunState.SUCCEEDED, outcome.error
    assert orjson.loads(outcome.result) == {"before": None, "after": {"at": 3}}
    extras = outcome.extras
    assert extras.log.lines.text() == "half way count=3\n"
    assert "hunter2" not in extras.log.stdout.text()
    assert extras.log.stdout.text().startswith("the token is ")
    assert extras.note.checkpoint == b'{"at":3}'
    assert [event.topic for event in extras.emits] == ["tests.events"]


def test_a_run_that_was_lost_twice_runs_in_a_fresh_child_whatever_its_handler_says(bench):
    warm = result(bench, bench.begin("child.pid"))
    alone = [
        result(bench, bench.begin(name, losses=2)) for name in ("child.pid", "child.thread", "child.thread")
    ]
    assert len({*alone, warm, os.getpid()}) == 5
    assert result(bench, bench.begin("child.thread", losses=1)) == os.getpid()


def test_suspects_do_not_wait_for_each_other_nor_for_other_runs(make, tmp_path):
    bench = make(processes=1)
    about = {"payload": {"folder": str(tmp_path)}}
    other = bench.begin("child.waits", **about)
    suspects = [bench.begin("child.waits", losses=2, **about) for _ in range(3)]
    for held in (other, *suspects):
        bench.wait((tmp_path / f"began-{held.run.id}").exists, "each to begin")
    (tmp_path / "go").touch()
    assert len({result(bench, held) for held in (other, *suspects)}) == 4


def held_suspect(bench: Bench, folder: Path) -> RunningAttempt:
    """Begin a suspect that takes the only turn until the file `go` exists."""
    first = bench.begin("child.waits", losses=2, payload={"folder": str(folder)})
    bench.wait((folder / f"began-{first.run.id}").exists, "the first to begin")
    return first


def test_other_runs_do_not_wait_for_suspects(make, tmp_path):
    bench = make(processes=1, suspects=1)
    first = held_suspect(bench, tmp_path)
    second = bench.begin("child.pid", losses=2)
    bench.wait(lambda: second.key in bench.processes.waiting, "the second suspect to wait")
    assert result(bench, bench.begin("child.pid")) != os.getpid()
    assert second.began_at == 0.0
    (tmp_path / "go").touch()
    # Another handler's suspect does not get the child of the first.
    assert result(bench, second) != result(bench, first)


def test_suspects_that_wait_share_a_child_one_after_the_other(make, tmp_path):
    bench = make(processes=1, suspects=1)
    first = held_suspect(bench, tmp_path)
    others = [bench.begin("child.waits", losses=2, payload={"folder": str(tmp_path)}) for _ in range(3)]
    bench.wait(lambda: len(bench.processes.waiting) == 3, "the others to wait")
    (tmp_path / "go").touch()
    (pid,) = {result(bench, held) for held in (first, *others)}
    bench.wait(lambda: gone(pid), "a child that no suspect waits for to end")


def test_a_suspect_that_kills_the_shared_child_fails_only_its_own_attempt(make, tmp_path):
    bench = make(processes=1, suspects=1)
    folder = str(tmp_path)
    first = held_suspect(bench, tmp_path)
    payloads: list[dict[str, object]] = [
        {"folder": folder},
        {"folder": folder, "exit": 7},
        {"folder": folder},
    ]
    before, killer, after = [bench.begin("child.waits", losses=2, payload=about) for about in payloads]
    bench.wait(lambda: len(bench.processes.waiting) == 3, "the others to wait")
    (tmp_path / "go").touch()
    assert result(bench, before) == result(bench, first)
    assert "ended with exit code 7 without an answer" in bench.end(killer).error
    assert result(bench, after) != result(bench, first)


def test_the_child_of_a_suspect_that_leaves_a_thread_is_not_used_again(make, tmp_path):
    bench = make(processes=1, suspects=1)
    payload = {"folder": str(tmp_path), "gate": True}
    first, second = [bench.begin("child.leaves_a_thread", losses=2, payload=payload) for _ in range(2)]
    bench.wait(lambda: second.key in bench.processes.waiting, "the second to wait")
    (tmp_path / "go").touch()
    assert result(bench, first) != result(bench, second)


def test_a_suspect_that_is_cancelled_while_it_waits_leaves_no_child_behind(make, tmp_path):
    bench = make(processes=1, suspects=1)
    first = held_suspect(bench, tmp_path)
    second = bench.begin("child.waits", losses=2, payload={"folder": str(tmp_path)})
    bench.wait(lambda: second.key in bench.processes.waiting, "the second to wait")
    bench.executors.cancel([second.key])
    assert bench.end(second).state is RunState.CANCELLED
    (tmp_path / "go").touch()
    pid = result(bench, first)
    bench.wait(lambda: gone(pid), "the child to end")


def test_a_child_that_cannot_be_started_is_no_failure_of_the_handler_and_says_why(make):
    bench = make()
    bench.processes._load["modules"] = ["tests.support.nowhere"]
    held = bench.begin("child.pid")
    outcome = bench.end(held)
    # The policy is about failures of the work, and none was done.
    assert outcome.state is RunState.RETRYING
    assert outcome.attempt_outcome is AttemptOutcome.REJECTED
    assert held.began_at == 0.0
    assert (
        "could not load its modules: HandlerLoadError: module tests.support.nowhere not found"
        in outcome.error
    )


def test_exactly_once_is_refused_in_a_process(bench):
    bench.executors._transactions = object()  # a worker that can do it for threads
    outcome = bench.end(bench.begin("child.pid", delivery=DeliverySemantics.EXACTLY_ONCE))
    bench.executors._transactions = None
    assert outcome.attempt_outcome is AttemptOutcome.REJECTED
    assert "'child.pid' runs in a process" in outcome.error


def test_everything_ends_with_a_worker_that_is_killed(tmp_path: Path):
    program = (
        "import time; from tests.support import child_handlers; from tests.unit.worker.bench import Bench; "
        "from noonmark.handlers import REGISTRY; "
        "bench = Bench(modules=[child_handlers.__name__], registry=REGISTRY); "
        f"bench.begin('child.deaf', payload={{'folder': {str(tmp_path)!r}}}); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT) as worker:
        wait_until((tmp_path / "began").exists, "the handler to begin", PATIENCE)
        pids = [int(pid) for pid in (tmp_path / "began").read_text().split()]
        worker.kill()
    wait_until(lambda: all(map(gone, pids)), "all to end", PATIENCE)
