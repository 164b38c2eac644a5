"""The checker finds every fault that is planted, by the right invariant, and nothing where there is none."""

from datetime import timedelta
from typing import cast

import pytest
from tests.chaos.edits import edit, edit_call
from tests.chaos.good_history import BOUND, END, FIRST, NOON, NS, after, expected, good, run
from tests.chaos.planted import PLANTED, Fault, drop, judged, table
from tests.chaos.watching import Rest
from tests.support.cluster import ROOT, Cluster
from tests.support.publish import Load

from noonmark.verify import INVARIANTS, Expected, judge, page
from noonmark.verify.history import Attempt, History, LifecycleRecord, Message


def test_a_sound_system_has_no_violation_and_its_duplicate_is_listed() -> None:
    report = judged(None)
    assert report.violations == []
    assert report.duplicates == {"tock2": [1, 2]}
    assert report.rising == 1
    # 3 and 3 ticks, 3 of alone, 40 of the crowd, 2 of narrow; once; nine that were due on arrival.
    assert report.planned == 3 + 3 + 3 + 40 + 2 + 1 + 9
    assert report.skipped == {"overlap": 1}


@pytest.mark.parametrize("fault", PLANTED, ids=[fault.name for fault in PLANTED])
def test_a_planted_fault_is_found_by_its_invariant_and_by_no_other(fault: Fault) -> None:
    report = judged(fault)
    assert {violation.invariant for violation in report.violations} == fault.found_by
    assert all(violation.what for violation in report.violations)


def test_every_invariant_that_is_judged_has_a_planted_fault() -> None:
    planted = frozenset().union(*(fault.found_by for fault in PLANTED))
    assert {i.id for i in INVARIANTS if i.rule is not None} == planted


def test_the_table_shows_every_fault_and_none_is_found_otherwise() -> None:
    lines = list(table())
    assert len(lines) == 1 + len(PLANTED)
    assert not [line for line in lines if line.endswith("WRONG")]


def test_the_page_lists_every_invariant() -> None:
    page = (ROOT / "docs" / "verification.md").read_text(encoding="utf-8")
    for invariant in INVARIANTS:
        assert f"| {invariant.id} |" in page


def test_what_cannot_be_judged_is_said_and_never_passed() -> None:
    history = good()
    history.workers = history.owners = history.drains = history.exits = history.poisoned = (
        history.claim_p99_ms
    ) = None
    history.faults = None
    report = judge(history, expected(), bound=BOUND)
    assert report.violations == []
    assert set(report.unjudged) == {"S10", "S14", "S19", "V4", "V5", "V6", "V7", "V8"}
    assert all(why.startswith("not applicable: ") for why in report.unjudged.values())
    lines = list(page(report))
    assert lines[0] == "verdict       CLEAN"
    assert sum("not applicable" in line for line in lines) == 8


@pytest.mark.parametrize(("number", "counts"), [(1, True), (2, True), (3, False)])
def test_a_rejected_attempt_counts_only_if_a_worker_of_release_0_2_rejected_it(
    number: int, counts: bool
) -> None:
    history = good()
    rejected = Attempt("handed", 3, 1, "rejected", after(4), after(4.1), "no handler", FIRST.id, NOON)
    history.attempts.append(rejected)
    history.runs = [r._replace(attempt=number, fence=4) if r.id == "handed" else r for r in history.runs]
    of_attempts = {"attempt_gone", "attempt_count", "outcome", "losses"}

    found = {v.kind for v in judge(history, expected(), bound=BOUND).violations if v.invariant == "S15"}

    assert (not found & of_attempts) is counts


def test_times_of_clocks_that_do_not_agree_are_not_compared() -> None:
    history = good()
    edit(history, "calls", "once", at=after(3))
    edit(history, "workers", "2", since=after(1))
    assert {v.invariant for v in judge(history, expected(), bound=BOUND).violations} == {"S16", "S19"}
    history.clocks_agree = False
    assert judge(history, expected(), bound=BOUND).violations == []


def test_a_process_that_was_stopped_may_make_its_call_after_its_attempt_was_lost() -> None:
    history = good()
    edit_call(history, "maybe", 1, at=after(7))
    assert [v.invariant for v in judge(history, expected(), bound=BOUND).violations] == ["S16"]
    history.unreachable = {FIRST.pid}
    assert judge(history, expected(), bound=BOUND).violations == []


def test_an_event_without_digests_says_nothing_of_result_and_error() -> None:
    history = good()
    history.lifecycle = [t._replace(result_digest=None, error_digest=None) for t in history.lifecycle]
    assert judge(history, expected(), bound=BOUND).violations == []


def test_an_event_that_the_relay_sent_twice_is_no_second_verdict() -> None:
    history = good()
    history.lifecycle.append(history.lifecycle[0])
    assert judge(history, expected(), bound=BOUND).violations == []


def test_instants_covered_by_a_summary_row_are_not_silent() -> None:
    history = good()
    drop(history, "tick0", "tick1", "tick2")
    skipped = {"state": "skipped", "reason": "misfired", "started_at": None, "attempt": 0, "result": None}
    skipped |= {"instants": 3, "owner": None, "epoch": None}
    history.runs.append(run("range", "tick", NOON, last_scheduled_for=after(2), **skipped))
    history.lifecycle.append(LifecycleRecord("t-range", "range", "skipped", 1, NS))
    plan = expected()
    plan.ends[NS, "tick"] = frozenset({"skipped"})
    assert judge(history, plan, bound=BOUND).violations == []


def test_without_a_plan_the_schedules_of_the_ledger_are_the_plan() -> None:
    history = good()
    drop(history, "tick1")
    assert [v.invariant for v in judge(history, bound=BOUND).violations] == ["V1"]


def test_a_plan_of_the_test_stands_above_the_schedules() -> None:
    plan = expected()
    plan.instants[NS, "tick"] = [NOON, after(1), after(2), after(3)]
    assert [v.invariant for v in judge(good(), plan, bound=BOUND).violations] == ["V1"]
    assert judge(good(), Expected(), bound=BOUND).violations == []


def test_an_instant_younger_than_the_bound_may_still_be_on_its_way() -> None:
    history = good()
    drop(history, "tick2")
    history.judged_at = after(2) + BOUND - timedelta(milliseconds=1)
    assert judge(history, expected(), bound=BOUND).violations == []
    history.judged_at = END
    assert [v.invariant for v in judge(history, expected(), bound=BOUND).violations] == ["V1"]


def test_partway_only_what_must_hold_at_every_moment_is_judged() -> None:
    history = good()
    history.left_over["outbox"] = 5
    history.outbox_seconds = 9.0
    history.known_events.discard("e-tick")
    history.calls = [call for call in history.calls if call.run != "once"]
    report = judge(history, expected(), bound=BOUND, partway=True)
    assert report.violations == []
    assert report.unjudged["V3"] == "the system is still running"


def test_a_dead_run_that_a_person_discards_has_no_second_verdict() -> None:
    history = discarded("discarded")
    assert judge(history, bound=BOUND).violations == []


def test_a_discard_that_the_ledger_does_not_confirm_is_a_second_verdict() -> None:
    history = discarded("dead")
    assert {v.kind for v in judge(history, bound=BOUND).violations} == {"second_verdict"}


def test_a_run_that_is_cancelled_while_it_waits_for_a_callback_needs_no_message_of_its_last_fence() -> None:
    history = good()
    edit(history, "runs", "stopped", attempt=1, started_at=after(0.1))
    edit(history, "jobs", "j-stopped", changed_at=after(1))
    history.messages.append(Message("shop.runs.default.normal", 99, "stopped", 1, NS))
    assert judge(history, bound=BOUND).violations == []
    history.messages.pop()
    assert [v.invariant for v in judge(history, bound=BOUND).violations] == ["S6"]


def discarded(state: str) -> History:
    """The event of a discard follows the one of a death, under the same fence; the ledger has a state."""
    history = good()
    if state == "discarded":
        history.dead_letters = [letter for letter in history.dead_letters if letter.run != "doomed"]
        edit(history, "runs", "doomed", state=state)
    dead = next(event for event in history.lifecycle if event.run == "doomed")
    history.lifecycle.append(dead._replace(event="t-discard", state="discarded"))
    return history


def test_of_a_system_that_did_not_come_to_rest_only_what_is_stuck_is_reported() -> None:
    history = good()
    # What a history that is gathered in motion looks like: a call and a message that are not there yet.
    history.calls = [call for call in history.calls if call.run != "once"]
    history.messages = [message for message in history.messages if message.run != "tick0"]
    assert {v.invariant for v in judge(history, expected(), bound=BOUND).violations} >= {"S6", "T2"}

    history.restless = {"unfinished runs": 3, "uncommitted records of t.runs[0]": 7}
    report = judge(history, expected(), bound=BOUND)

    assert [(v.invariant, v.kind, v.what) for v in report.violations] == [
        ("V2", "restless", "did not come to rest in time: 3 unfinished runs"),
        ("V3", "restless", "did not come to rest in time: 7 uncommitted records of t.runs[0]"),
    ]
    others = {item.id for item in INVARIANTS} - {"V2", "V3"}
    assert set(report.unjudged) == others
    assert report.unjudged["S6"] == "not applicable: the system did not come to rest"


def test_a_run_that_is_stuck_is_shown_with_what_did_not_come_to_rest() -> None:
    history = good()
    history.restless = {"messages in the outbox": 1}
    history.runs[0] = history.runs[0]._replace(state="running", finished_at=None)

    report = judge(history, expected(), bound=timedelta(0))

    assert [(v.invariant, v.kind) for v in report.violations] == [("V2", "unfinished"), ("V3", "restless")]


class Moving:
    """A system that comes to rest step by step, each time it is looked at."""

    def __init__(self, *steps: tuple[dict[str, int], dict[str, int]]) -> None:
        self.steps = list(steps)

    def unsettled(self, _load: object) -> dict[str, int]:
        return self._next()[0]

    def lags(self) -> dict[str, int]:
        return self._next()[1]

    def _next(self) -> tuple[dict[str, int], dict[str, int]]:
        return self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]


def rest(*steps: tuple[dict[str, int], dict[str, int]]) -> Rest:
    return Rest(cast("Cluster", Moving(*steps)), cast("Load", None))


def test_a_wait_ends_when_nothing_moves_and_refusals_do_not_count() -> None:
    waiting = rest(
        ({"unfinished": 2, "rejections": 1}, {}), ({"rejections": 1}, {}), ({}, {"t[0]": 1}), ({}, {})
    )
    assert waiting.wait(30) is not None
    assert waiting.restless == {}


@pytest.mark.parametrize(
    ("step", "restless"),
    [
        (({"unfinished": 2, "timers": 1}, {}), {"timers": 1, "unfinished runs": 2}),
        (({"outbox": 4, "batches": 1}, {}), {"messages in the outbox": 4, "start batches": 1}),
        (({}, {"t.runs[0]": 7}), {"uncommitted records of t.runs[0]": 7}),
    ],
)
def test_a_wait_that_is_in_vain_says_what_did_not_come_to_rest(
    step: tuple[dict[str, int], dict[str, int]], restless: dict[str, int]
) -> None:
    waiting = rest(step)
    assert waiting.wait(0.0) is None
    assert waiting.restless == restless
