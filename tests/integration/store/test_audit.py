"""The audit log: written whole, read by filter, never changed, pruned by housekeeping alone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest
from tests.support.emptying import turn_clock

from noonmark.settings import Settings
from noonmark.store.access.audit import AuditEntry, Outcome, write_entries
from noonmark.store.database.engines import engine_of
from noonmark.store.database.scope import enter_scope
from noonmark.store.maintenance import housekeeping
from noonmark.store.views.audit import AuditFilter, list_entries


@pytest.fixture
def db(emptied_database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(emptied_database, autocommit=True) as connection:
        yield connection


@pytest.fixture
def listed(emptied_database: str):
    engine = engine_of(emptied_database, application="test")

    def look(limit=50, before=None, **wanted):
        with engine.connect() as connection:
            return list_entries(connection, AuditFilter(**wanted), limit=limit, before=before)

    return look


def entry(**more) -> AuditEntry:
    fields = {
        "actor": "key:a",
        "actor_name": "ci",
        "action": "job.pause",
        "namespace": "billing",
        "object": "job:1",
        "outcome": Outcome.DONE,
        "reason": None,
        "before": {"state": "active"},
        "after": {"state": "paused"},
        "request_id": "r1",
        "address": "10.0.0.1",
    }
    return AuditEntry(**{**fields, **more})


def test_entries_are_read_as_they_were_written_the_newest_first(db, listed):
    write_entries(db, [entry(object="job:1"), entry(object="job:2", namespace=None, outcome=Outcome.DENIED)])
    write_entries(db, [])

    second, first = listed().rows

    assert {name: first[name] for name in AuditEntry._fields} == entry(object="job:1")._asdict()
    assert (second["namespace"], second["outcome"]) == (None, "denied")


@pytest.mark.parametrize(
    "wanted",
    [
        {"namespace": "other"},
        {"actor": "oidc:ada"},
        {"action": "job.cancel"},
        {"object": "job:9"},
        {"outcome": Outcome.FAILED},
    ],
)
def test_each_filter_finds_what_it_says(db, listed, wanted):
    write_entries(db, [entry(), entry(**wanted), entry()])

    (found,) = listed(**wanted).rows
    assert {name: found[name] for name in wanted} == wanted


def test_times_bound_a_listing(db, listed):
    write_entries(db, [entry(object="early")])
    (noon,) = db.execute("select noonmark_now()").fetchone()
    turn_clock(db, timedelta(hours=1))
    write_entries(db, [entry(object="late")])

    assert [row["object"] for row in listed(since=noon + timedelta(minutes=30)).rows] == ["late"]
    assert [row["object"] for row in listed(until=noon + timedelta(minutes=30)).rows] == ["early"]


def test_a_listing_goes_on_where_the_page_before_ended(db, listed):
    write_entries(db, [entry(object=f"job:{n}") for n in range(5)])
    seen, before = [], None
    while True:
        page = listed(limit=2, before=before)
        seen += [row["object"] for row in page.rows]
        if page.next is None:
            break
        before = page.next

    assert seen == [f"job:{n}" for n in (4, 3, 2, 1, 0)]


def test_an_entry_goes_with_the_change_it_tells_of(db, listed):
    with db.transaction(force_rollback=True):
        write_entries(db, [entry()])

    assert listed().rows == []


def test_odd_texts_and_large_documents_fail_nothing(db, listed):
    write_entries(
        db,
        [
            entry(
                actor_name="x" * 5000,
                object="a\0b",
                reason="\0" * 3 + "é" * 1000,
                before={"text": "a\0b", "path": "c:\\u0000", "deep": {"n": [1, {"x": "\\\0"}]}},
                after={"much": "x" * 100_000},
            )
        ],
    )

    (row,) = listed().rows
    assert row["actor_name"] == "x" * 500
    assert row["object"] == "ab"
    assert row["reason"] == "é" * 497
    assert row["before"] == {"text": "ab", "path": "c:\\u0000", "deep": {"n": [1, {"x": "\\"}]}}
    assert row["after"] == {"omitted": "100011 bytes"}


@pytest.mark.parametrize(
    "change", ["update audit_log set actor = 'x'", "delete from audit_log", "truncate audit_log"]
)
def test_the_log_is_only_added_to_by_its_owner_too(db, change):
    write_entries(db, [entry()])

    with pytest.raises(psycopg.errors.RestrictViolation, match="only added to"):
        db.execute(change)
    assert db.execute("select count(*) from audit_log").fetchone() == (1,)


def test_pruning_lets_nobody_update(db):
    with db.transaction(force_rollback=True):
        db.execute("select set_config('noonmark.prunes_audit', 'yes', true)")
        with pytest.raises(psycopg.errors.RestrictViolation):
            db.execute("update audit_log set actor = 'x'")


def test_entries_go_after_their_days_and_no_sooner(db, listed):
    write_entries(db, [entry(object="old")])
    turn_clock(db, timedelta(days=399))
    write_entries(db, [entry(object="new")])
    settings = Settings(audit_days=400)

    housekeeping.run_housekeeping(db, settings)
    assert [row["object"] for row in listed().rows] == ["new", "old"]
    turn_clock(db, timedelta(days=400, seconds=5))
    housekeeping.run_housekeeping(db, settings)
    assert [row["object"] for row in listed().rows] == ["new"]
    with pytest.raises(psycopg.errors.RestrictViolation):
        db.execute("delete from audit_log")


def test_answers_that_nobody_asks_for_again_go_after_a_day(db):
    db.execute(
        "insert into idempotency (namespace, key, request_hash, status, body) values ('a', 'k', '', 202, '{}')"
    )
    turn_clock(db, timedelta(hours=23, minutes=59))
    housekeeping.run_housekeeping(db, Settings())
    assert db.execute("select count(*) from idempotency").fetchone() == (1,)
    turn_clock(db, timedelta(hours=24, seconds=5))
    housekeeping.run_housekeeping(db, Settings())
    assert db.execute("select count(*) from idempotency").fetchone() == (0,)


def test_more_than_one_step_of_old_rows_goes_in_one_round(db, monkeypatch):
    monkeypatch.setattr(housekeeping, "_AT_ONCE", 10)
    write_entries(db, [entry() for _ in range(25)])
    turn_clock(db, timedelta(days=500))

    report = housekeeping.run_housekeeping(db, Settings())

    assert report.pruned_rows >= 25
    assert db.execute("select count(*) from audit_log").fetchone() == (0,)


def test_under_row_level_security_entries_are_written_and_nothing_else(db):
    with db.transaction():
        enter_scope(db, ["billing"])
        write_entries(db, [entry()])
    with db.transaction(force_rollback=True):
        enter_scope(db, None)
        write_entries(db, [entry(namespace=None)])
    with db.transaction(force_rollback=True):
        enter_scope(db, None)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute("delete from audit_log")
