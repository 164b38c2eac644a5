"""Jobs that this version cannot read, written by another version or by hand: each costs its own run only."""

from __future__ import annotations

import orjson
import pytest
from tests.unit.worker.bench import Bench
from tests.unit.worker.hands import record, started

from noonmark.attempts.running_attempt import Delivery, RunningAttempt
from noonmark.core.states import AttemptOutcome, Lane, RunState
from noonmark.store.runs.starts import StartRequest

BROKEN = {
    "no JSON": "{",
    "a list": "[1]",
    "a new guarantee": orjson.dumps({"delivery": "at_least_twice"}).decode(),
    "a text as timeout": orjson.dumps({"timeout_seconds": "soon"}).decode(),
    "an object as timeout": orjson.dumps({"timeout_seconds": {"a": 1}}).decode(),
    "a text as deadline": orjson.dumps({"deadline_seconds": "soon"}).decode(),
}


def attempt_of(work: str, handler: str) -> RunningAttempt:
    run = started(work=work, handler=handler)
    request = StartRequest(run.id, run.scheduled_for, 1)
    return RunningAttempt.of(run, Delivery(request, record(), Lane.NORMAL), "default")


@pytest.fixture
def bench():
    bench = Bench()
    bench.calls = []
    bench.registry.add(lambda ctx: bench.calls.append(ctx.run_id), name="tests.called")
    bench.registry.add(lambda ctx: 1 / 0, name="tests.fails")
    yield bench
    bench.executors.close()


@pytest.mark.parametrize("work", BROKEN.values(), ids=BROKEN)
def test_a_run_whose_job_cannot_be_read_is_rejected_and_the_others_run(bench, work):
    odd, plain = attempt_of(work, "tests.called"), attempt_of("{}", "tests.called")
    bench.executors.submit([odd, plain])
    outcome = bench.end(odd)
    # Another worker may be newer and read it, but nothing finds a retry policy in what is no object.
    state, reason = (RunState.RETRYING, None) if work[:2] == '{"' else (RunState.DEAD, "rejected")
    assert (outcome.attempt_outcome, outcome.state, outcome.reason) == (
        AttemptOutcome.REJECTED,
        state,
        reason,
    )
    assert outcome.error.startswith("this worker cannot read the job of this run: ")
    assert bench.end(plain).state is RunState.SUCCEEDED
    assert bench.calls == [plain.run.id]


@pytest.mark.parametrize("retry", [{"max_retries": 9, "forever": True}, {"jitter": "some"}, [1]])
def test_a_run_is_not_repeated_by_rules_that_cannot_be_read(bench, retry):
    odd = attempt_of(orjson.dumps({"retry": retry}).decode(), "tests.fails")
    bench.executors.submit([odd])
    outcome = bench.end(odd)
    assert (outcome.state, outcome.reason) == (RunState.DEAD, "retries_exhausted")
    assert "ZeroDivisionError" in outcome.error
