"""Faults planted in a good history: the checker must find each by the right invariant, and by no other.

`python -m tests.chaos.planted` prints what was planted and who found it, `python -m tests.chaos.fault_tables`
the tables of rules and of columns.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, NamedTuple

from tests.chaos import copied, misled, tampered
from tests.chaos.edits import add, drop, edit
from tests.chaos.good_history import BOUND, END, NOON, NS, STEP, after, call, every, expected, good, run

from noonmark.verify import History, Report, judge
from noonmark.verify.history import (
    Attempt,
    Child,
    DeadLetter,
    Drain,
    Exit,
    LifecycleRecord,
    Message,
    Owners,
    Passed,
    Pause,
    Rejection,
    Sighting,
    Unpassed,
    Write,
)


def double(h: History) -> None:
    add(h, run("twin", "once", NOON))


def shift(h: History) -> None:
    at = NOON + timedelta(milliseconds=1)
    edit(h, "runs", "tick0", scheduled_for=at)
    edit(h, "calls", "tick0", scheduled_for=at)


def swap(h: History) -> None:
    edit(h, "calls", "tick0", scheduled_for=after(1))
    edit(h, "calls", "tick1", scheduled_for=NOON)


def swap_jobs(h: History) -> None:
    edit(h, "runs", "tick0", job="j-tock")
    edit(h, "runs", "tock0", job="j-tick")


def start_early(h: History) -> None:
    edit(h, "runs", "once", queued_at=NOON - 2 * STEP, started_at=NOON - STEP)
    edit(h, "lifecycle", "once", started_at=NOON - STEP)


def accept_stale(h: History) -> None:
    # The worker that was thought lost calls late, and its target takes it.
    late = next(c for c in h.calls if (c.run, c.fence) == ("tock2", 1))
    h.calls.remove(late)
    h.calls.append(late._replace(at=after(20)))
    h.unreachable.add(1)


def fall_back(h: History) -> None:
    late = next(c for c in h.calls if (c.run, c.fence) == ("flaky", 1))
    h.calls.remove(late)
    h.calls.append(late._replace(at=after(20), accepted=False))


def write_stale(h: History) -> None:
    h.writes = [Write("ledgered", 1), Write("flaky", 1)]


def commit_past_a_hole(h: History) -> None:
    h.runs.append(
        run(
            "hole",
            "now",
            NOON,
            state="queued",
            attempt=0,
            result=None,
            started_at=None,
            finished_at=None,
            origin="manual",
            queued_at=END,
            owner=None,
            epoch=None,
        )
    )
    h.messages.append(Message("runs.low", 901, "hole", 1, NS))
    h.passed.append(Passed("runs.low", 0, 901, "hole", 1))


def commit_past_an_event(h: History) -> None:
    h.passed.append(Passed("submissions", 0, 9, event="vanished"))


def commit_past_bytes(h: History) -> None:
    h.passed.append(Passed("submissions", 0, 10))


def lose_an_event(h: History) -> None:
    h.known_events.discard("e-tick")


def swallow_a_bad_event(h: History) -> None:
    h.rejections = [r for r in h.rejections if r.event != "bad"]
    h.known_events.add("bad")


def refuse_a_good_event(h: History) -> None:
    h.rejections.append(Rejection("submissions", 0, 4, "e-now", "for no good reason"))


def two_live_fences(h: History) -> None:
    edit(h, "attempts", "tock2", finished_at=after(9.05))


def orphan(h: History) -> None:
    h.children = [Child(4711, "once", 1, worker_lives=True)]


def second_verdict(h: History) -> None:
    h.lifecycle.append(LifecycleRecord("t-other", "once", "succeeded", 1, NS))


def delete_an_announced_run(h: History) -> None:
    """With all that was written about it, but for its event."""
    said = list(h.lifecycle)
    drop(h, "now")
    h.lifecycle = said


def change_a_verdict(h: History) -> None:
    h.sightings = [Sighting("once", "skipped", 1)]


def call_twice(h: History) -> None:
    h.calls.append(next(c for c in h.calls if c.run == "now")._replace(at=NOON + 3 * STEP))


def attempt_too_many(h: History) -> None:
    edit(h, "versions", "j-flaky", max_attempts=1)


def letter_missing(h: History) -> None:
    h.dead_letters.clear()


def letter_for_the_living(h: History) -> None:
    h.dead_letters.append(DeadLetter("now", NS))


def outbox_missing(h: History) -> None:
    h.messages = [m for m in h.messages if (m.run, m.fence) != ("tock2", 2)]
    h.passed = [p for p in h.passed if (p.run, p.fence) != ("tock2", 2)]


def never_announce(h: History) -> None:
    h.lifecycle = [t for t in h.lifecycle if t.run != "now"]


def announce_otherwise(h: History) -> None:
    edit(h, "lifecycle", "once", state="dead")


def run_after_cancel(h: History) -> None:
    h.calls.append(call(next(r for r in h.runs if r.id == "stopped"), 2, after(5)))


def start_after_the_jobs_cancel(h: History) -> None:
    edit(h, "jobs", "j-tick", state="cancelled", changed_at=after(0.5))


def start_in_a_pause(h: History) -> None:
    h.pauses = [Pause("j-tick", after(-2), after(1.5))]


def cross_namespace(h: History) -> None:
    edit(h, "messages", "once", namespace="bakery")


def cross_namespace_run(h: History) -> None:
    for kind in ("runs", "messages", "calls", "lifecycle"):
        edit(h, kind, "once", namespace="bakery")


def invert(h: History) -> None:
    """A high run waits while thirty of a lower lane start."""
    edit(h, "runs", "crowd5", lane=0, started_at=after(41), finished_at=after(42))
    edit(h, "lifecycle", "crowd5", lane="high", started_at=after(41), finished_at=after(42))
    edit(h, "calls", "crowd5", at=after(41.5))
    for n in range(6, 40):
        edit(h, "runs", f"crowd{n}", lane=2)
        edit(h, "lifecycle", f"crowd{n}", lane="low")


def overlap(h: History) -> None:
    edit(h, "runs", "alone0", finished_at=after(25))
    edit(h, "lifecycle", "alone0", finished_at=after(25))


def crowd_a_limit(h: History) -> None:
    edit(h, "runs", "narrow0", finished_at=after(3))
    edit(h, "lifecycle", "narrow0", finished_at=after(3))


def silent(h: History) -> None:
    edit(h, "versions", "j-tick", schedule=every(1, 4))


def silent_on_arrival(h: History) -> None:
    drop(h, "now")


def skip_for_no_reason(h: History) -> None:
    edit(h, "runs", "alone1", reason=None)
    edit(h, "lifecycle", "alone1", reason=None)


def stuck(h: History) -> None:
    edit(h, "runs", "now", state="running", finished_at=None, result=None)
    h.lifecycle = [t for t in h.lifecycle if t.run != "now"]


def old_outbox(h: History) -> None:
    h.outbox_seconds = 12.0


def lag(h: History) -> None:
    h.unpassed.append(Unpassed("runs.low", 0, 3, 4))


def unowned(h: History) -> None:
    h.owners = [Owners("trigger", 3, 4)]


def idle_change(h: History) -> None:
    h.owners = [Owners("trigger", 4, 4, idle_changes=1)]


def delay_beside_poison(h: History) -> None:
    edit(h, "runs", "tick1", started_at=after(7), finished_at=after(7.1))
    edit(h, "lifecycle", "tick1", started_at=after(7), finished_at=after(7.1))
    edit(h, "calls", "tick1", at=after(7.05))


def slow_drain(h: History) -> None:
    h.drains = [Drain("return of the broker", 700.0, 1000.0)]


def exit_by_itself(h: History) -> None:
    h.exits = [Exit("worker-3", "ended by itself with exit code 1")]


def slow_claim(h: History) -> None:
    h.claim_p99_ms = 140.0


def end_wrongly(h: History) -> None:
    edit(h, "runs", "now", state="discarded", reason="by_handler", result=None)
    h.attempts.append(Attempt("now", 1, 1, "failed", NOON + STEP, NOON + 10 * STEP))
    edit(h, "lifecycle", "now", state="discarded", result_digest="")


def succeed_without_a_call(h: History) -> None:
    h.calls = [c for c in h.calls if c.run != "once"]


def call_for_nobody(h: History) -> None:
    h.calls.append(next(c for c in h.calls if c.run == "now")._replace(run="nobody"))


def begin_again(h: History) -> None:
    maybe = next(r for r in h.runs if r.id == "maybe")
    h.calls.append(call(maybe, 2, after(7)))


def two_rows(h: History) -> None:
    h.writes = [Write("ledgered", 1), Write("ledgered", 1)]


def no_row(h: History) -> None:
    h.writes = []


class Fault(NamedTuple):
    """A fault, and the invariants that must name it: these and no other."""

    name: str
    plant: Callable[[History], None]
    found_by: frozenset[str]


def _faults(names: dict[str, Any], **by: str) -> list[Fault]:
    return [Fault(name, names[name], frozenset(ids.split())) for name, ids in by.items()]


PLANTED = [
    Fault("drop", lambda h: drop(h, "tick1"), frozenset({"V1"})),
    *_faults(
        globals(),
        double="S1", shift="S13 S18 V1", swap="S13", swap_jobs="S13 S18", start_early="S7", accept_stale="S4",
        fall_back="S3 S16", write_stale="S4", two_live_fences="S3", lose_an_event="S2", swallow_a_bad_event="S2",
        refuse_a_good_event="S2", commit_past_a_hole="S5", commit_past_an_event="S5", commit_past_bytes="S5",
        orphan="S9", second_verdict="S4", delete_an_announced_run="S4 V1", change_a_verdict="S4", call_twice="S4", attempt_too_many="S11",
        letter_missing="S11", letter_for_the_living="S11", outbox_missing="S6", never_announce="S6",
        announce_otherwise="S6", run_after_cancel="S9", start_after_the_jobs_cancel="S7",
        start_in_a_pause="S7", cross_namespace="S12", cross_namespace_run="S12", invert="S14", overlap="S8",
        crowd_a_limit="S8", silent="V1", silent_on_arrival="V1", skip_for_no_reason="V1", stuck="V2",
        old_outbox="V3", lag="V3", unowned="V4", idle_change="V4", delay_beside_poison="V5", slow_drain="V6",
        exit_by_itself="V7", slow_claim="V8", end_wrongly="T1", succeed_without_a_call="T2",
        call_for_nobody="T2", begin_again="T3", two_rows="T3", no_row="T3",
    ),
    *_faults(
        vars(tampered),
        delete_all_attempts="S15", delete_all_attempts_of_the_dead="S15", delete_the_first_attempt="S15",
        delete_the_last_attempt="S15", delete_attempts_and_lower_the_count="S15", delete_a_loss="S15 V5",
        delete_an_uncounted_attempt="S15", lower_the_count="S15", lower_the_count_of_the_run_alone="S15 S17",
        raise_the_count="S15", lower_the_losses="S15", renumber_without_a_redrive="S15 S17",
        fail_the_attempt_of_a_success="S15", hand_back_the_attempt_of_the_dead="S15 S17",
        finish_before_start="S16", finish_an_attempt_before_its_start="S16", start_before_queueing="S16",
        end_without_a_date="S16 V2", rewrite_a_result="S17", delete_a_result="S17", give_the_dead_a_result="S17",
        move_a_finish="S17", erase_the_error_of_the_dead="S17", erase_the_error_of_an_unknown="S17",
        erase_the_error_of_an_attempt="S17", rewrite_an_error="S17", rewrite_a_reason="S17",
        rewrite_a_letter="S17", erase_the_error_of_a_letter="S17", raise_a_fence="S6", lower_a_fence="S4 S6",
        bury_a_redriven_success="S6 T1",
    ),
    *_faults(copied.plants(), **copied.FOUND_BY),
    *_faults(misled.plants(), **misled.FOUND_BY),
]  # fmt: skip


def judged(fault: Fault | None) -> Report:
    """The verdict on the good history, with a fault in it if one is given."""
    history = copy.deepcopy(good())
    if fault is not None:
        fault.plant(history)
    return judge(history, expected(), bound=BOUND)


def table() -> Iterator[str]:
    """One line per fault: what was planted, who must find it, who did."""
    sound = judged(None)
    yield f"{'(nothing)':<48}{'must be found by: none':<32}found by: {_names(sound)}"
    for fault in PLANTED:
        report = judged(fault)
        ok = {v.invariant for v in report.violations} == fault.found_by
        wanted = f"must be found by: {', '.join(sorted(fault.found_by))}"
        yield f"{fault.name:<48}{wanted:<32}found by: {_names(report):<12}{'' if ok else ' WRONG'}".rstrip()


def _names(report: Report) -> str:
    return ", ".join(sorted({violation.invariant for violation in report.violations})) or "none"


if __name__ == "__main__":
    print("\n".join(table()))
