"""Errors and results that Postgres cannot store as they are."""

import psycopg
import pytest
from tests.integration.store.world import outcome

from noonmark.core.states import RunState


@pytest.mark.parametrize(
    ("error", "stored"),
    [
        ("a\x00b", "a\\x00b"),
        ("half \ud83d of a pair", "half \\ud83d of a pair"),
        ("\x00", "\\x00"),
        ("", ""),
        ("x" * 10_000_000, "x" * 4000),
        ("\u20ac\U0001f600 \r\n\t", "\u20ac\U0001f600 \r\n\t"),
        ('{"not": "json', '{"not": "json'),
    ],
    ids=["nul", "lone surrogate", "only nul", "empty", "10 MB", "unicode", "half of json"],
)
def test_any_error_text_is_stored_and_told_as_far_as_it_can_be(world, error, stored):
    worker = world.worker()
    (retried, dead) = world.started(worker, 2)

    world.record(
        worker,
        [
            outcome(retried, RunState.RETRYING, error=error, retry_seconds=1.0),
            outcome(dead, RunState.DEAD, error=error, reason="not_retryable"),
        ],
    )

    assert world.run(retried.id)["error"] == world.run(dead.id)["error"] == stored
    assert world.column("select error from attempts") == [stored, stored]
    assert world.column("select error from dead_letters") == [stored]
    assert [told["error"] for told in world.told()] == [stored, stored]
    digests = "select encode(sha256(convert_to(error, 'UTF8')), 'hex') from runs"
    assert [told["error_digest"] for told in world.told()] == world.column(digests)
    assert all("result_digest" not in told for told in world.told())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"\\ud83d"', '"\\ud83d"'),
        ('{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
        ("1e400", "1e400"),
        ("[" * 200 + "]" * 200, "[" * 200 + "]" * 200),
        ('"\\u0000"', '"\\u0000"'),
    ],
    ids=["lone surrogate", "duplicate keys", "huge number", "deep", "escaped nul"],
)
def test_a_result_is_stored_as_the_text_that_the_worker_wrote(world, text, value):
    worker = world.worker()
    (run,) = world.started(worker)

    world.record(worker, [outcome(run, result=text)])

    assert world.value("select result::text from runs where id = %s", run.id) == value
    assert world.run(run.id)["state"] == "succeeded"
    (told,) = world.told()
    digest = "select encode(sha256(convert_to(result::text, 'UTF8')), 'hex') from runs where id = %s"
    assert told["result_digest"] == world.value(digest, run.id)
    assert "error_digest" not in told


@pytest.mark.parametrize("text", ["{", "", "nul\x00"], ids=["broken", "empty", "nul"])
def test_a_result_that_is_no_json_is_an_error_of_the_data_and_nothing_is_written(world, text):
    worker = world.worker()
    (run,) = world.started(worker)

    with pytest.raises(psycopg.DataError):
        world.record(worker, [outcome(run, result=text)])

    assert world.run(run.id)["state"] == "running"


def test_a_batch_of_large_results_is_recorded(world):
    worker = world.worker()
    runs = world.started(worker, 50)
    text = '"' + "x" * 60_000 + '"'

    assert len(world.record(worker, [outcome(run, result=text) for run in runs]).states) == 50
