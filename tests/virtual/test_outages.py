"""Outages of every kind: each missed instant has the verdict that its policy says, told one by one by a clerk."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from tests.virtual.instants import Member
from tests.virtual.outages import KINDS, NEW_YORK, POLICIES, Kind, Outage, around, go_through, outages, table
from tests.virtual.system import system_of, utc
from tests.virtual.verdicts import Policy

from noonmark.core.planning import gaps


@pytest.fixture(scope="module")
def system(postgres_server, template_database):
    with system_of(postgres_server, template_database, utc("2026-01-01T00:00:00Z")) as system:
        yield system


@pytest.mark.timeout(900)
def test_every_instant_of_every_outage_has_the_verdict_of_its_policy(system, say):
    results = [(outage.name, go_through(system, outage)) for outage in outages()]

    table(results, say)
    instants = sum(told.instants for _, result in results for told in result.told.values())
    say(f"{len(results)} outages, {len(KINDS)} schedules, {len(POLICIES)} policies, {instants:,} instants")
    wrong = [difference for _, result in results for difference in result.wrong]
    assert not wrong, f"{len(wrong)} jobs differ\n" + "\n".join(wrong[:40])


def test_gaps_longer_than_the_cap_are_summed_up_with_the_right_count_and_ends(system, say):
    created, before, after = around(utc("2026-03-07T22:17:30Z"), utc("2026-03-09T12:43:30Z"))
    outage = Outage(
        "down over spring forward, ledger cap 20",
        created,
        [*before, (utc("2026-03-09T12:43:30Z"), "claim"), *after],
    )
    result = go_through(system, outage, row_cap=20)

    table([(outage.name, result)], say)
    assert not result.wrong, "\n".join(result.wrong)
    assert all(told.summaries for name, told in result.told.items() if name != "fire_all, look-back 7 d")


def test_a_flood_is_worked_off_in_claims_of_no_more_runs_than_the_cap(system, say):
    """Time goes on while the trigger catches up: 20 s from one claim to the next."""
    created, before, _ = around(utc("2026-05-31T22:30:30Z"), utc("2026-06-01T00:30:30Z"))
    back = utc("2026-06-01T00:30:30Z")
    claims = [(back + timedelta(seconds=20 * n), "claim once") for n in range(40)]
    outage = Outage("down 2 h, 7 runs a claim", created, [*before, *claims])

    result = go_through(system, outage, run_cap=7, row_cap=20)

    table([(outage.name, result)], say)
    assert not result.wrong, "\n".join(result.wrong)
    most = system.value(
        "select max(n) from (select count(*) as n from runs where state = 'queued' group by job_id, queued_at) as claims"
    )
    assert most == 7


def test_ten_days_of_minutes_of_a_recurrence_set_all_have_a_verdict(system, monkeypatch):
    """More instants than one step walks through: the rest is for the next step."""
    # How far a step comes must not depend on the machine here.
    monkeypatch.setattr(gaps, "WALK_SECONDS", 60.0)
    back = utc("2026-03-14T10:00:30Z")
    dtstart = datetime(2026, 1, 1)  # noqa: DTZ001 - local
    kind = Kind(
        "minutely rrule",
        {"rrule": ["FREQ=MINUTELY", "FREQ=HOURLY"], "dtstart": dtstart.isoformat(), "timezone": NEW_YORK},
        (Member("rrule", "FREQ=MINUTELY", dtstart=dtstart),),
        NEW_YORK,
    )
    created, before, after = around(utc("2026-03-04T10:00:30Z"), back)
    outage = Outage("down 10 days", created, [*before, (back, "claim"), *after])
    policies = [policy for policy in POLICIES if policy.policy != "fire_all"]

    result = go_through(system, outage, kinds=[kind], policies=policies, step_cap=gaps.WALK_CAP)

    assert not result.wrong, "\n".join(result.wrong)
    assert all(told.instants > 10 * 24 * 60 for told in result.told.values())


def test_what_comes_due_after_a_resume_is_judged_by_the_job_and_not_by_the_resume(system):
    """The trigger is away when a pause ends, and comes back two hours later."""
    created, before, _ = around(utc("2026-05-31T20:30:30Z"), utc("2026-05-31T22:30:30Z"))
    wrong = []
    for choice in ("skip", "latest", "all"):
        steps = [
            *before,
            (utc("2026-05-31T20:30:30Z"), "pause"),
            (utc("2026-05-31T22:30:30Z"), f"resume {choice}"),
            (utc("2026-06-01T00:30:30Z"), "claim"),
        ]
        policies = [*POLICIES, Policy("fire_latest, look-back 7 d", "fire_latest", look_back=7 * 86_400)]
        wrong += go_through(system, Outage(f"resume {choice}", created, steps), policies=policies).wrong
    assert not wrong, f"{len(wrong)} jobs differ\n" + "\n".join(wrong)
