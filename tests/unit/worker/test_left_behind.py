"""What executors pass on of an attempt: its log and notes, without its secrets, however it ended."""

import threading
from collections.abc import Iterator

import pytest
from tests.unit.worker.bench import Bench

from noonmark.core.states import AttemptOutcome, RunState

VALUE = "hunter2-hunter2"


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench(environment={"NOONMARK_SECRET_TESTS__API_KEY": VALUE})
    yield bench
    bench.executors.close()


def careless(ctx):
    value = ctx.secret("api-key")
    ctx.log(f"with {value}")
    ctx.checkpoint({"at": 1})
    return value


def test_a_result_and_its_log_are_cleaned(bench):
    async def asynchronous(ctx):
        return {"token": careless(ctx)}

    bench.registry.add(careless, name="sync")
    bench.registry.add(asynchronous, name="async")
    ended = bench.run("sync", "async")
    assert ended["sync"].result == '"[secret:api-key]"'
    assert ended["async"].result == '{"token":"[secret:api-key]"}'
    for outcome in ended.values():
        assert outcome.extras.log.lines.text() == "with [secret:api-key]\n"
        assert outcome.extras.note.checkpoint == b'{"at":1}'


def test_a_line_that_was_logged_before_the_secret_was_asked_for_is_cleaned_too(bench):
    def early(ctx):
        ctx.log(f"guessed {VALUE}")
        ctx.secret("api-key")

    bench.registry.add(early, name="early")
    assert bench.run("early")["early"].extras.log.lines.text() == "guessed [secret:api-key]\n"


def test_an_error_is_cleaned_and_takes_the_log_along(bench):
    def raises(ctx):
        raise RuntimeError(careless(ctx))

    bench.registry.add(raises, name="raises")
    outcome = bench.run("raises")["raises"]
    assert outcome.state is RunState.DEAD
    assert outcome.error.startswith("RuntimeError: [secret:api-key] (in raises, line")
    assert outcome.extras.log.lines.text() == "with [secret:api-key]\n"


def test_a_secret_that_is_missing_fails_the_attempt_in_its_own_words(bench):
    bench.registry.add(lambda ctx: ctx.secret("other"), name="missing")
    assert bench.run("missing")["missing"].error == (
        "secret://other is not known to this worker: set the environment variable NOONMARK_SECRET_TESTS__OTHER"
    )


def test_a_handler_past_its_time_leaves_what_it_had_told(bench):
    told, go_on = threading.Event(), threading.Event()

    def hangs(ctx):
        careless(ctx)
        told.set()
        go_on.wait(20)

    bench.registry.add(hangs, name="hangs")
    held = bench.begin("hangs", timeout_seconds=0.01)
    try:
        assert told.wait(20)
        bench.executors.end_overdue(held.began_at + 10)
        outcome = bench.end(held)
    finally:
        go_on.set()
    assert outcome.attempt_outcome is AttemptOutcome.TIMED_OUT
    assert outcome.extras.log.lines.text() == "with [secret:api-key]\n"
    assert outcome.extras.note.checkpoint == b'{"at":1}'


def test_what_is_left_of_a_run_that_was_handed_back_is_nobodys(bench):
    waiting, go_on = threading.Event(), threading.Event()

    def works(ctx):
        saved = ctx.checkpoint(1)
        waiting.set()
        go_on.wait(20)
        saved.wait(20)

    bench.registry.add(works, name="works")
    held = bench.begin("works")
    assert waiting.wait(20)
    bench.executors.release([held.key])
    go_on.set()
    bench.registry.add(lambda ctx: None, name="next")
    bench.run("next")
    assert bench.of(held) is None
