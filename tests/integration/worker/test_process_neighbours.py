"""Runs that share a process: what one of them says, leaves or changes never becomes a part of the next."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import orjson
import pytest
from tests.support import child_handlers
from tests.support.cluster import wait_until
from tests.unit.worker.bench import Bench

from noonmark.core.states import RunState
from noonmark.handlers import REGISTRY


@pytest.fixture
def make() -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def bench(**more) -> Bench:
        settings = {"processes": 1, "grace_seconds": 0.2, **more}
        made.append(Bench(modules=[child_handlers.__name__], registry=REGISTRY, **settings))
        return made[-1]

    yield bench
    for each in made:
        each.executors.close()


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


def test_a_thread_that_a_run_leaves_behind_tells_nothing_about_the_next(bench, tmp_path):
    folder = {"folder": str(tmp_path)}
    pid = result(bench, "child.leaves_a_thread", payload=folder)
    following = bench.begin("child.waits", payload=folder)
    wait_until((tmp_path / "refused").exists, "the thread is told", 20)
    (tmp_path / "go").touch()
    outcome = bench.end(following)

    assert orjson.loads(outcome.result) == pid
    assert outcome.extras is None
    assert "the attempt is over" in (tmp_path / "refused").read_text()


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
