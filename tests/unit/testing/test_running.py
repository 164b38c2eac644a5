"""`run_handler` executes one attempt by the worker's own code."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from noonmark.core.retry import RetryPolicy
from noonmark.handlers import Cancel, Context, Discard, Retry, Snooze, handler
from noonmark.testing import Progress, VirtualClock, run_handler, run_handler_async

FIXED = RetryPolicy(max_retries=2, delay_seconds=10, factor=2, jitter="none")


def test_what_a_handler_returns_is_what_the_ledger_keeps_of_it():
    def work(ctx: Context) -> object:
        return {"at": datetime(2030, 1, 1, tzinfo=UTC), "of": (1, 2), "got": ctx.payload}

    result = run_handler(work, {"user_id": 42})
    assert (result.state, result.outcome) == ("succeeded", "succeeded")
    assert result.value == {"at": "2030-01-01T00:00:00+00:00", "of": [1, 2], "got": {"user_id": 42}}
    assert result.exception is None
    assert result.retry_in is None


def test_an_async_handler_is_run_on_a_loop_of_its_own_or_on_that_of_the_test():
    async def work(ctx: Context) -> int:
        await asyncio.sleep(0)
        return ctx.attempt

    assert run_handler(work, attempt=3).value == 3
    assert asyncio.run(run_handler_async(work, attempt=4)).value == 4
    assert asyncio.run(run_handler_async(lambda ctx: ctx.fence, fence=9)).value == 9


def test_the_context_says_what_the_test_has_set():
    clock = VirtualClock(datetime(2031, 5, 1, 12, tzinfo=UTC))
    seen = []

    def work(ctx: Context) -> None:
        seen.append(
            (ctx.scheduled_for, ctx.deadline, ctx.namespace, ctx.origin, ctx.cancelled, ctx.last_checkpoint)
        )

    run_handler(
        work,
        clock=clock,
        timeout_seconds=60,
        namespace="billing",
        origin="manual",
        cancelled=True,
        checkpoint={"n": 1},
    )
    now = clock.now()
    assert seen == [(now, now + timedelta(seconds=60), "billing", "manual", True, {"n": 1})]


@pytest.mark.parametrize(
    ("raised", "attempt", "state", "outcome", "reason", "retry_in"),
    [
        (ValueError("no"), 1, "retrying", "failed", None, 10),
        (ValueError("no"), 2, "retrying", "failed", None, 20),
        (ValueError("no"), 3, "dead", "failed", "retries_exhausted", None),
        (Retry(in_=7, reason="later"), 1, "retrying", "failed", None, 7),
        (Retry(in_=7), 3, "dead", "failed", "retries_exhausted", None),
        (Snooze(in_=90), 3, "retrying", "snoozed", None, 90),
        (Snooze(in_=0), 1, "retrying", "snoozed", None, 1),
        (Cancel("not needed"), 1, "cancelled", "cancelled", "by_handler", None),
        (Discard("hopeless"), 1, "discarded", "failed", "by_handler", None),
        (SystemExit(3), 3, "dead", "failed", "retries_exhausted", None),
    ],
    ids=lambda value: repr(value) if isinstance(value, BaseException) else "",
)
def test_what_follows_is_decided_by_the_rules_of_retries(raised, attempt, state, outcome, reason, retry_in):
    def work(_ctx: Context) -> None:
        raise raised

    result = run_handler(work, attempt=attempt, retry=FIXED)
    assert (result.state, result.outcome, result.reason, result.retry_in) == (
        state,
        outcome,
        reason,
        retry_in,
    )
    assert result.exception is raised


def test_a_deadline_of_all_attempts_ends_the_run():
    def work(_ctx: Context) -> None:
        raise ValueError("no")

    clock = VirtualClock()
    result = run_handler(
        work,
        clock=clock,
        scheduled_for=clock.now() - timedelta(seconds=95),
        deadline_seconds=100,
        retry=FIXED,
    )
    assert (result.state, result.reason) == ("dead", "deadline")


def test_an_async_handler_that_takes_too_long_is_timed_out_and_one_that_times_out_itself_has_failed():
    async def slow(_ctx: Context) -> None:
        await asyncio.Event().wait()

    async def impatient(_ctx: Context) -> None:
        raise TimeoutError("the bank did not answer")

    assert run_handler(slow, timeout_seconds=0.01).outcome == "timed_out"
    assert run_handler(slow, timeout_seconds=0.01, delivery="at_most_once").state == "unknown"
    result = run_handler(impatient)
    assert result.outcome == "failed"
    assert result.error.startswith("TimeoutError: the bank did not answer")


def test_progress_checkpoints_logs_and_events_are_told():
    def work(ctx: Context) -> None:
        ctx.progress(0.5, "half")
        ctx.checkpoint({"row": 10}).wait()
        ctx.checkpoint({"row": 20})
        assert ctx.last_checkpoint == {"row": 20}
        ctx.log("paid", amount=7)
        ctx.emit("invoices.paid", {"n": 1}, key="k")

    result = run_handler(work)
    assert result.error is None
    assert result.progress == (Progress(0.5, "half"),)
    assert result.checkpoints == ({"row": 10}, {"row": 20})
    assert result.checkpoint == {"row": 20}
    assert result.logs == ("paid amount=7",)
    (event,) = result.emitted
    assert (event.topic, event.key, event.value) == ("invoices.paid", b"k", b'{"n":1}')
    assert dict(event.headers)["noonmark-fence"] == "1"


def test_events_of_an_attempt_that_failed_are_not_sent():
    def work(ctx: Context) -> None:
        ctx.emit("invoices.paid", "x")
        raise ValueError

    assert run_handler(work).emitted == ()


def test_the_operators_list_of_topics_is_asked():
    def work(ctx: Context) -> None:
        ctx.emit("payroll", "x")

    result = run_handler(work, emit_topics=["invoices.*"])
    assert result.state == "retrying"
    assert "NOONMARK_EMIT_TOPICS does not list it" in result.error


def test_secrets_are_found_by_name_and_taken_out_of_everything_that_an_attempt_leaves():
    def work(ctx: Context) -> str:
        token = ctx.secret("bank.token")
        ctx.log(f"calling with {token}")
        return f"token {token}"

    result = run_handler(work, secrets={"bank.token": "hunter2-hunter2"})
    assert result.value == "token [secret:bank.token]"
    assert result.logs == ("calling with [secret:bank.token]",)
    assert "is not known to this worker" in run_handler(work).error


def test_a_result_that_is_no_json_fails_the_attempt_as_in_a_worker():
    result = run_handler(lambda _ctx: object())
    assert (result.state, result.reason) == ("dead", "not_retryable")
    assert "is not JSON" in result.error


def test_a_transaction_is_the_connection_that_the_test_gives():
    given = object()
    seen = []

    def work(ctx: Context) -> None:
        with ctx.transaction() as connection:
            seen.append(connection)

    run_handler(work, transaction=given)
    assert seen == [given]
    assert "this run has no transaction" in run_handler(work).error


def test_a_registered_handler_is_found_by_name_and_a_bad_function_is_refused():
    @handler("tests.testing.echo")
    def echo(ctx: Context) -> object:
        return ctx.payload

    assert run_handler("tests.testing.echo", 7).value == 7
    assert run_handler(echo, 8).value == 8
    with pytest.raises(LookupError, match="no handler is registered as 'nobody'"):
        run_handler("nobody")
    with pytest.raises(ValueError, match="takes"):
        run_handler(lambda: None)


def test_a_payload_that_could_not_arrive_is_an_error_of_the_test():
    with pytest.raises(TypeError):
        run_handler(lambda ctx: ctx.payload, {"of": object()})


def test_the_clock_stands_until_it_is_moved():
    clock = VirtualClock()
    assert clock.now() == datetime(2030, 1, 1, tzinfo=UTC)
    assert clock.advance(90) == datetime(2030, 1, 1, 0, 1, 30, tzinfo=UTC)
    assert clock.advance(timedelta(days=1)) == clock.now()
    with pytest.raises(ValueError, match="cannot go back"):
        clock.advance(-1)
    with pytest.raises(ValueError, match="has no zone"):
        clock.set(datetime(2030, 1, 1))  # noqa: DTZ001 - that is the point
