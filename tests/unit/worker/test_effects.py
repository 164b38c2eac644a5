"""What a handler does through its context goes with its attempt, without the secrets that it was given."""

import asyncio
import uuid
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs
from tests.unit.worker.hands import hand, services

from noonmark.attempts.context import context_of
from noonmark.attempts.secrets import SecretError
from noonmark.handlers import Context, Detached, Fenced, ResultError
from noonmark.handlers.context import Context as ContextClass
from noonmark.telemetry import logs

ENVIRONMENT = {"NOONMARK_SECRET_TESTS__API_KEY": "hunter2-hunter2"}


@pytest.fixture
def of():
    return hand()


@pytest.fixture
def ctx(of):
    return context_of(of, services(ENVIRONMENT))


def test_an_attempt_that_uses_nothing_leaves_nothing(of, ctx):
    assert ctx.last_checkpoint is None
    assert (of.extras, of.redactor) == (None, None)


def test_log_lines_are_kept_and_written_to_the_log_of_the_worker(of, ctx):
    with capture_logs() as lines:
        ctx.log("read page", page=3, left="7 of 10")
        ctx.log("done")
    assert of.extras.log.lines.text() == "read page page=3 left=7 of 10\ndone\n"
    assert [(line["event"], line["message"]) for line in lines] == [
        ("handler_logged", "read page page=3 left=7 of 10"),
        ("handler_logged", "done"),
    ]
    assert lines[0]["run_id"] == str(of.run.id)


def test_a_secret_is_given_and_kept_out_of_everything_that_is_told(of, ctx):
    value = ctx.secret("api-key")
    assert value == "hunter2-hunter2"
    with capture_logs() as lines:
        ctx.log(f"calling with {value}", token=value)
    ctx.progress(0.5, f"at {value}")
    ctx.checkpoint({"token": value, "n": 1})
    assert lines[0]["message"] == "calling with [secret:api-key] token=[secret:api-key]"
    note = of.extras.note
    assert (note.message, note.checkpoint) == ("at [secret:api-key]", b'{"token":"[secret:api-key]","n":1}')
    assert value not in of.extras.log.lines.text()


def test_a_secret_that_is_not_there_is_named(ctx):
    with pytest.raises(SecretError, match=r"secret://other is not known to this worker"):
        ctx.secret("other")


def test_the_latest_progress_and_checkpoint_count(of, ctx):
    ctx.progress(0.1, "begun")
    ctx.checkpoint({"at": 1})
    ctx.checkpoint({"at": 2})
    ctx.progress(None, "x" * 600)
    note = of.extras.note
    assert (note.progress, len(note.message), note.checkpoint, note.version) == (None, 500, b'{"at":2}', 4)
    assert ctx.last_checkpoint == {"at": 2}


def test_a_later_attempt_finds_what_the_earlier_one_kept(of):
    of.checkpoint = b'{"at":7}'
    assert context_of(of, services()).last_checkpoint == {"at": 7}


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_progress_that_is_no_share_is_refused(ctx, fraction):
    with pytest.raises(ValueError, match="not between 0 and 1"):
        ctx.progress(fraction)


@pytest.mark.parametrize(
    ("value", "told"), [({1, 2}, "is not JSON"), ("x" * 70_000, "bytes of JSON"), ("a\0b", "U\\+0000")]
)
def test_a_checkpoint_that_cannot_be_kept_is_refused_where_it_is_made(of, ctx, value, told):
    with pytest.raises(ResultError, match=f"the handler's checkpoint.*{told}"):
        ctx.checkpoint(value)
    assert of.extras is None


def test_nothing_at_all_is_a_checkpoint_too(of, ctx):
    of.checkpoint = b"1"
    ctx.checkpoint(None)
    assert ctx.last_checkpoint is None


def test_outside_a_worker_effects_are_kept_in_memory():
    ctx = Context(
        run_id=uuid.UUID(int=1),
        job_id=uuid.UUID(int=2),
        namespace="default",
        attempt=1,
        scheduled_for=datetime(2026, 6, 1, 9, tzinfo=UTC),
        fence=1,
    )
    ctx.effects.secrets["key"] = "value"
    ctx.log("line")
    ctx.progress(1, "done")
    ctx.checkpoint([1]).wait(0)

    async def waits():
        await ctx.checkpoint([2])

    asyncio.run(waits())
    effects = ctx.effects
    assert isinstance(effects, Detached)
    assert (effects.lines, effects.fraction, effects.message, effects.kept) == (["line"], 1, "done", b"[2]")
    assert (ctx.secret("key"), ctx.last_checkpoint) == ("value", [2])


def test_the_facts_of_a_context_make_another_one(ctx):
    assert "_effects" not in ctx.facts()
    again = ContextClass(**ctx.facts())
    assert (again.run_id, again.deadline, again.idempotency_key) == (
        ctx.run_id,
        ctx.deadline,
        ctx.idempotency_key,
    )
    assert replace(again, fence=2).fence == 2


def test_whoever_waits_for_an_attempt_that_was_let_go_is_told(of):
    parts = services()
    saved = context_of(of, parts).checkpoint(1)
    parts.notes.forget([of.key])
    with pytest.raises(Fenced):
        saved.wait(0)

    async def waits():
        await saved

    with pytest.raises(Fenced):
        asyncio.run(waits())


def test_other_loggers_of_the_process_lose_the_secrets_that_it_has_resolved(of, monkeypatch):
    parts = services(ENVIRONMENT)
    monkeypatch.setattr(logs, "_masks", [parts.secrets.mask])
    value = context_of(of, parts).secret("api-key")
    assert logs.mask_value({"url": f"https://x/?key={value}"}) == {
        "url": "https://x/?key=[secret:tests/api-key]"
    }
    assert logs.mask_value(ValueError(f"no {value}")) == "ValueError: no [secret:tests/api-key]"


def test_a_piece_of_a_secret_at_the_end_of_a_cut_message_is_taken_out_too(of, ctx):
    value = ctx.secret("api-key")
    ctx.progress(None, "x" * 490 + value)
    assert of.extras.note.message == "x" * 490 + "[secret:api-key]"


def test_of_an_endless_line_the_end_is_kept_in_both_logs(of, ctx):
    with capture_logs() as lines:
        ctx.log("x" * 1_000_000 + "end")
    assert lines[0]["message"] == "x" * 65_533 + "end"
    assert of.extras.log.lines.text().endswith("xend\n")
