"""Runs that share a process: what one of them says, leaves or changes never becomes a part of the next."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import orjson
import psutil
import pytest
from tests.support import child_handlers, polluting_handlers
from tests.support.below import closed_without_trace
from tests.support.cluster import ROOT
from tests.unit.worker.bench import Bench

from noonmark.core.states import AttemptOutcome, DeliverySemantics, RunState
from noonmark.handlers import REGISTRY


@pytest.fixture
def make() -> Iterator[Callable[..., Bench]]:
    modules = [child_handlers.__name__, polluting_handlers.__name__]
    usual = {"modules": modules, "registry": REGISTRY, "processes": 1, "grace_seconds": 0.2}
    with closed_without_trace(lambda **more: Bench(**{**usual, **more})) as create:
        yield create


@pytest.fixture
def bench(make: Callable[..., Bench]) -> Bench:
    return make()


def result(bench, handler, **more):
    outcome = bench.end(bench.begin(handler, **more))
    assert outcome.state is RunState.SUCCEEDED, outcome.error
    return orjson.loads(outcome.result or "null")


def test_what_is_too_much_for_a_message_is_bounded_or_refused_as_on_a_thread(bench):
    outcome = bench.end(bench.begin("child.tells_much"))

    assert orjson.loads(outcome.result) == ["EmitRefusedError", "SecretError"]
    assert outcome.extras.log.lines.text().endswith("xxend\nhalf \\ud800\n")
    assert outcome.extras.note.message == "half \\ud800"
    assert outcome.extras.emits == []


# Whether the process is used again: what cannot be put back must not meet another run.
POLLUTERS = {
    "a_thread": False,
    "low_level_thread": False,
    "address_space": True,
    "cpu_time": True,
    "few_files": True,
    "timers": True,
    "posix_timer": False,
    "recursion": True,
    "descriptors": False,
    "connections": False,
    "a_connection": True,
    "outputs": False,
    "signals": True,
    "settings": True,
    **({"user": False} if os.getuid() == 0 else {}),
}


@pytest.mark.parametrize("name", POLLUTERS)
def test_whatever_a_run_does_to_its_process_the_next_succeeds(bench, tmp_path, name):
    folder = {"folder": str(tmp_path)}
    polluted = result(bench, f"pollute.{name}")
    outcome = bench.end(bench.begin("pollute.victim", payload=folder))

    assert outcome.state is RunState.SUCCEEDED, outcome.error
    assert (orjson.loads(outcome.result) == polluted) is POLLUTERS[name]
    assert outcome.extras.log.stdout.text() == outcome.extras.log.stderr.text() == "victim\n"


def test_a_thread_that_a_run_leaves_behind_tells_nothing_about_the_next(bench, tmp_path):
    folder = {"folder": str(tmp_path)}
    pid = result(bench, "child.leaves_a_thread", payload=folder)
    following = bench.begin("child.pid")
    outcome = bench.end(following)

    assert orjson.loads(outcome.result) != pid
    assert outcome.extras is None


def test_folder_environment_signals_and_timers_are_put_back(bench, tmp_path):
    before = result(bench, "child.looks_around")
    assert result(bench, "child.litters", payload={"folder": str(tmp_path)}) == before[0]

    assert result(bench, "child.looks_around") == before


def test_a_process_whose_streams_are_closed_is_not_used_again(bench):
    pid = result(bench, "child.closes_its_streams")

    assert result(bench, "child.pid") != pid


@pytest.mark.parametrize(
    "message",
    [
        {"type": "progress", "fraction": "much", "message": "x"},
        {"type": "progress", "fraction": 7, "message": "x"},
        {"type": "checkpoint", "data": "no JSON"},
        {"type": "checkpoint", "data": '"' + "x" * 100_000 + '"'},
        {"type": ["log"]},
        {"type": "done", "result": "no JSON", "left": False},
    ],
)
def test_what_a_context_would_have_refused_is_refused_by_the_worker(bench, message):
    outcome = bench.end(bench.begin("child.speaks_for_its_context", payload={"message": message}))

    assert outcome.state is RunState.DEAD
    assert outcome.extras is None or outcome.extras.note is None
    assert result(bench, "child.pid")


def test_an_order_that_is_broken_fails_its_run(bench):
    outcome = bench.end(bench.begin("child.raises_what_is_broken"))

    assert outcome.error == "the handler raised an exception whose type or text cannot be read"


def test_variables_that_are_no_text_reach_the_process(make, monkeypatch):
    monkeypatch.setitem(os.environb, b"NO_TEXT", b"caf\xe9")
    assert "NO_TEXT" in result(make(), "child.looks_around")[2]


def test_a_folder_that_a_thread_left_and_removed_is_not_that_of_processes(bench, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the folder is put back after the test
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()

    assert result(bench, "child.looks_around")[1] == str(ROOT)


def test_a_run_is_not_rejected_because_the_supervisor_was_stopped_before_it_started_a_child(bench):
    pid = result(bench, "child.pid")
    (supervisor,) = [p for p in psutil.Process().children() if "supervisor.py" in " ".join(p.cmdline())]
    psutil.Process(pid).kill()
    bench.wait(lambda: not psutil.pid_exists(pid), "the child to be reaped")
    supervisor.suspend()

    assert result(bench, "child.pid") != pid


def test_a_worker_without_descriptors_rejects_what_it_did_not_begin(bench):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    errors = []
    for spare in range(20):
        # It ends at another place each time: the socket, the input, the request, a pipe, the supervisor.
        limit = max(int(each.name) for each in Path("/proc/self/fd").iterdir()) + 20
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        filled = []
        try:
            with suppress(OSError):
                while True:
                    filled.append(os.open(os.devnull, os.O_RDONLY))
            for _ in range(spare):
                os.close(filled.pop())
            outcome = bench.end(bench.begin("child.pid", delivery=DeliverySemantics.AT_MOST_ONCE))
        finally:
            list(map(os.close, filled))
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if outcome.state is RunState.SUCCEEDED:
            break
        errors.append(outcome.error)
        assert outcome.state is RunState.RETRYING, outcome.error
        assert outcome.attempt_outcome is AttemptOutcome.REJECTED

    assert "Too many open files" in errors[0]
    assert result(bench, "child.pid")
