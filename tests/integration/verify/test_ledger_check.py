"""`noonmark verify` on a real ledger: a good one is clean, and each planted fault is found by its rule alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.integration.verify.ledgers import Ledger


def overlapping_attempts(ledger: Ledger) -> None:
    ledger.world.db.execute(
        "update attempts set finished_at = finished_at + interval '1 hour' where run_id = %s",
        [ledger.retried],
    )


def a_start_before_its_instant(ledger: Ledger) -> None:
    ledger.world.db.execute(
        "update runs set started_at = scheduled_for - interval '1 second', queued_at = scheduled_for - interval '2 s'"
        " where id = %s",
        [ledger.plain],
    )


def more_attempts_than_allowed(ledger: Ledger) -> None:
    ledger.world.db.execute(
        'update jobs set work = \'{"retry": {"max_retries": 0}}\' where id ='
        " (select job_id from runs where id = %s)",
        [ledger.retried],
    )


def a_dead_run_without_a_letter(ledger: Ledger) -> None:
    ledger.world.db.execute("delete from dead_letters where run_id = %s", [ledger.dead])


def a_letter_of_another_namespace(ledger: Ledger) -> None:
    ledger.world.db.execute("update dead_letters set namespace = 'other'")


def a_deleted_attempt(ledger: Ledger) -> None:
    ledger.world.db.execute("delete from attempts where run_id = %s", [ledger.retried])


def an_end_before_the_start(ledger: Ledger) -> None:
    ledger.world.db.execute(
        "update runs set finished_at = started_at - interval '5 s' where id = %s", [ledger.plain]
    )


def an_erased_error(ledger: Ledger) -> None:
    ledger.world.db.execute("update attempts set error = null where run_id = %s", [ledger.retried])


FAULTS: dict[Callable[[Ledger], None], tuple[str, str]] = {
    overlapping_attempts: ("S3", "retried"),
    a_start_before_its_instant: ("S7", "plain"),
    more_attempts_than_allowed: ("S11", "retried"),
    a_dead_run_without_a_letter: ("S11", "dead"),
    a_letter_of_another_namespace: ("S12", "dead"),
    a_deleted_attempt: ("S15", "retried"),
    an_end_before_the_start: ("S16", "plain"),
    an_erased_error: ("S17", "retried"),
}


def test_a_good_ledger_is_clean(ledger):
    report = ledger.check()

    assert report.findings == []
    assert report.clean
    assert report.runs == ledger.world.count("runs") == 7


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_found_by_its_rule_and_by_no_other(ledger, plant):
    rule, run = FAULTS[plant]
    plant(ledger)

    report = ledger.check()

    assert dict(report.counts) == {rule: 1}
    (finding,) = report.findings
    assert finding.run_id == str(getattr(ledger, run))
    assert finding.run_id in finding.sentence
    assert finding.remedy


def test_steps_of_any_size_check_the_same_runs(ledger):
    a_dead_run_without_a_letter(ledger)

    for step in (1, 2, 3, 7, 8):
        report = ledger.check(step=step)
        assert (report.runs, dict(report.counts)) == (7, {"S11": 1})


def test_what_ended_within_the_last_minute_is_not_judged(ledger):
    a_dead_run_without_a_letter(ledger)
    ledger.world.db.execute(
        "update runs set finished_at = noonmark_now() - interval '59 seconds' where id = %s", [ledger.dead]
    )
    assert ledger.check().clean

    ledger.world.db.execute(
        "update runs set finished_at = noonmark_now() - interval '61 seconds' where id = %s", [ledger.dead]
    )
    assert "S11" in ledger.broken()


@pytest.mark.parametrize("step", [1, 2000])
def test_a_second_run_of_one_key_is_found_once_whatever_the_step(unindexed_ledger, step):
    world = unindexed_ledger.world
    names = ", ".join(
        world.column(
            "select column_name::text from information_schema.columns where table_name = 'runs' and column_name <> 'id'"
        )
    )
    world.db.execute(
        f"insert into runs (id, {names}) select noonmark_uuid7(), {names} from runs where id = %s",
        [unindexed_ledger.plain],
    )

    report = unindexed_ledger.check(step=step)

    assert dict(report.counts) == {"S1": 1}
    assert report.findings[0].run_id == str(unindexed_ledger.plain)
    assert report.findings[0].sentence.endswith("2 runs of one key")
