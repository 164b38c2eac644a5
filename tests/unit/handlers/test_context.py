"""What a handler sees of its run."""

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
import structlog
from structlog.testing import capture_logs

from noonmark.handlers import Context

RUN, JOB = uuid.UUID(int=1), uuid.UUID(int=2)


@pytest.fixture
def ctx():
    return Context(
        run_id=RUN,
        job_id=JOB,
        namespace="default",
        attempt=1,
        scheduled_for=datetime(2026, 6, 1, 9, tzinfo=UTC),
        fence=4,
    )


def test_the_idempotency_key_is_stable_over_attempts_and_fences(ctx):
    assert ctx.idempotency_key == f"{JOB}/2026-06-01T09:00:00.000000Z/schedule/"
    assert replace(ctx, attempt=3, fence=9).idempotency_key == ctx.idempotency_key


def test_a_redriven_task_has_the_idempotency_key_of_its_first_run(ctx):
    workflow = "01a2317d-eddf-7001-8df1-2c6499caff9f"
    first, redriven, other = (
        replace(ctx, run_id=uuid.uuid4(), origin="task", request_id=f"{workflow}/{rest}").idempotency_key
        for rest in ("4/0/1", "4/0/2", "5/0/1")
    )
    assert first == redriven
    assert first.endswith(f"/task/{workflow}%2F4%2F0")
    assert other != first


def test_the_idempotency_key_does_not_depend_on_the_zone_of_the_instant(ctx):
    there = ctx.scheduled_for.astimezone(timezone(timedelta(hours=2)))
    assert replace(ctx, scheduled_for=there).idempotency_key == ctx.idempotency_key


@pytest.mark.parametrize(
    "change",
    [
        {"scheduled_for": datetime(2026, 6, 1, 9, 0, 0, 1, tzinfo=UTC)},
        {"origin": "manual"},
        {"request_id": "r-1"},
        {"job_id": RUN},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_run_has_another_key(ctx, change):
    assert replace(ctx, **change).idempotency_key != ctx.idempotency_key


def test_the_key_is_printable_ascii_whatever_the_request_id_is(ctx):
    key = replace(ctx, origin="manual", request_id="a/b\r\nné").idempotency_key
    assert key.endswith("/manual/a%2Fb%0D%0An%C3%A9")
    assert key.isascii()
    assert key.isprintable()


def test_the_logger_carries_the_ids_of_the_run_and_is_made_once(ctx):
    assert ctx._logger is None
    with capture_logs() as lines:
        ctx.logger.info("sent", to="ada")
    assert ctx.logger is ctx.logger
    (line,) = lines
    assert line["run_id"] == str(RUN)
    assert line["job_id"] == str(JOB)
    assert (line["attempt"], line["fence"], line["to"]) == (1, 4, "ada")
    structlog.reset_defaults()


def test_a_misspelt_attribute_cannot_be_set(ctx):
    with pytest.raises(AttributeError):
        ctx.paylaod = {}
