"""Planted faults in what is written twice, and in columns that nothing else uses: copies, digests, times, workers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tests.chaos.edits import edit, edit_attempt, edit_call, forget
from tests.chaos.good_history import END, FIRST, FORMER, NOON, NS, QUEUES, SECOND, SHARDS, STEP, after, run

from noonmark.verify import History
from noonmark.verify.history import Message, Pause

Plant = Callable[[History], None]


def call_before_the_start(h: History) -> None:
    edit_call(h, "tock2", 2, at=after(8.5))


def call_after_the_end(h: History) -> None:
    edit(h, "calls", "once", at=after(3))


def call_with_another_number(h: History) -> None:
    edit_call(h, "flaky", 2, attempt=1)


def delete_all_traces_but_the_event_of_a_retry(h: History) -> None:
    forget(h, "flaky", 1)
    h.calls = [c for c in h.calls if (c.run, c.fence) != ("flaky", 1)]
    edit_call(h, "flaky", 2, attempt=1)
    edit(h, "runs", "flaky", attempt=1)
    h.lifecycle = [t._replace(attempt=1) if t.run == "flaky" else t for t in h.lifecycle]


def rewrite_the_end_of_an_error(h: History) -> None:
    """The event has a shortened error; its digest is that of the whole."""
    edit(h, "runs", "maybe", error="the worker was lost, or not")
    edit(h, "lifecycle", "maybe", error=None)


def rewrite_a_result_that_no_target_noted(h: History) -> None:
    edit(h, "calls", "crowd1", returns=None)
    edit(h, "runs", "crowd1", result='"undone"')


def invent_a_result(h: History) -> None:
    edit(h, "runs", "stopped", result='"done"')


def move_a_start(h: History) -> None:
    edit(h, "runs", "once", started_at=NOON + 1.5 * STEP)


def rewrite_the_error_of_a_retried_attempt(h: History) -> None:
    edit_attempt(h, "flaky", 1, error="bad luck")


def rewrite_the_error_of_the_last_attempt(h: History) -> None:
    edit_attempt(h, "doomed", 2, error="bad luck")


def rewrite_an_outcome_of_the_dead(h: History) -> None:
    edit_attempt(h, "doomed", 1, outcome="timed_out")


def move_the_start_of_an_attempt(h: History) -> None:
    edit_attempt(h, "flaky", 1, started_at=NOON + 1.5 * STEP)


def move_the_end_of_an_attempt(h: History) -> None:
    edit_attempt(h, "doomed", 1, finished_at=after(2))


def hide_a_death(h: History) -> None:
    h.deaths = [death for death in h.deaths or () if death.run != "doomed"]


def start_after_the_deadline(h: History) -> None:
    edit(h, "runs", "once", start_by=NOON - 20_000 * STEP)


def stand_for_more_instants(h: History) -> None:
    edit(h, "runs", "once", instants=3)


def stand_for_a_range(h: History) -> None:
    edit(h, "runs", "once", last_scheduled_for=after(5))


def refuse_without_a_reason(h: History) -> None:
    h.rejections[0] = h.rejections[0]._replace(reason="")


def forget_who_was_refused(h: History) -> None:
    h.rejections[0] = h.rejections[0]._replace(event=None)


def refuse_in_another_topic(h: History) -> None:
    h.rejections[1] = h.rejections[1]._replace(topic="submissions.low")


def refuse_in_another_partition(h: History) -> None:
    h.rejections[1] = h.rejections[1]._replace(partition=7)


def refuse_at_another_offset(h: History) -> None:
    h.rejections[1] = h.rejections[1]._replace(offset=7)


def shrink_a_limit(h: History) -> None:
    h.limits = dict.fromkeys(h.limits, 0)


def rename_a_job(h: History) -> None:
    edit(h, "jobs", "j-crowd", name="mob")


def move_a_job_to_another_tenant(h: History) -> None:
    edit(h, "jobs", "j-risen", namespace="bakery")


def promise_one_attempt(h: History) -> None:
    edit(h, "versions", "j-flaky", delivery="at_most_once", max_attempts=1)


def forbid_overlap(h: History) -> None:
    edit(h, "runs", "tick0", finished_at=after(1.5))
    edit(h, "lifecycle", "tick0", finished_at=after(1.5))
    edit(h, "versions", "j-tick", overlap="skip")


def exchange_the_processes_of_workers(h: History) -> None:
    edit(h, "workers", str(FIRST.id), pid=SECOND.pid)
    edit(h, "workers", str(SECOND.id), pid=FIRST.pid)


def misdate_a_message(h: History) -> None:
    edit(h, "messages", "once", scheduled_for=after(1))


def send_another_version(h: History) -> None:
    edit(h, "messages", "once", job_version=2)


def plan_with_a_version_that_does_not_exist(h: History) -> None:
    edit(h, "runs", "now", version=9)
    edit(h, "messages", "now", job_version=9)


def put_a_message_under_another_run(h: History) -> None:
    edit(h, "messages", "once", run="now", scheduled_for=None)


def raise_the_fence_of_a_message(h: History) -> None:
    edit(h, "messages", "once", fence=2)


def hold_a_slot_that_is_not_taken(h: History) -> None:
    _queue_a_run(h, holds_slot=True)


def take_a_slot_for_a_run_that_holds_none(h: History) -> None:
    h.slot_holders = {_queue_a_run(h, holds_slot=False)}


def _queue_a_run(h: History, **columns: Any) -> str:
    made = run("fresh", "alone", END, queued_at=END, state="queued", origin="manual", attempt=0, result=None)
    unstarted = {"started_at": None, "finished_at": None, "owner": None, "epoch": None}
    h.runs.append(made._replace(**unstarted, **columns))
    h.messages.append(Message("runs.low", 902, made.id, made.fence, NS))
    return made.id


def begin_after_the_lease_was_lost(h: History) -> None:
    """The worker ignores that its lease has lapsed: it begins what it had taken, before another does."""
    edit_call(h, "tock2", 1, at=after(8.5))


def record_after_the_lease_was_lost(h: History) -> None:
    """The worker ignores that its lease has lapsed, and nothing refuses its outcome."""
    edit(
        h,
        "runs",
        "maybe",
        state="succeeded",
        reason=None,
        error=None,
        result='"done"',
        fence=1,
        owner=FIRST.id,
        epoch=1,
    )
    edit(h, "runs", "maybe", started_at=NOON + STEP, finished_at=after(6))


def delete_a_job(h: History) -> None:
    h.jobs = [job for job in h.jobs if job.id != "j-now"]


def raise_the_version_of_a_job(h: History) -> None:
    edit(h, "jobs", "j-now", version=9)
    edit(h, "versions", "j-now", version=9)


def pause_in_the_future(h: History) -> None:
    h.pauses = [Pause("j-tick", LATER, None)]


LATER = END + timedelta(hours=1)

CHANGES: dict[str, tuple[str, str, dict[str, Any], str]] = {
    # fault: rows, whose, what is changed in this place alone, who must find it
    "move_an_instant_of_an_attempt": ("attempts", "flaky", {"scheduled_for": after(1)}, "S18"),
    "move_an_instant_of_a_letter": ("dead_letters", "doomed", {"scheduled_for": after(1)}, "S18"),
    "move_a_letter_to_another_job": ("dead_letters", "doomed", {"job": "j-risen"}, "S18"),
    "move_a_letter_to_another_tenant": ("dead_letters", "doomed", {"namespace": "bakery"}, "S12"),
    "change_the_kind_of_a_letter": ("dead_letters", "doomed", {"kind": "http"}, "S18"),
    "change_the_name_of_a_letter": ("dead_letters", "doomed", {"name": "damned"}, "S18"),
    "change_the_cause_of_a_letter": ("dead_letters", "doomed", {"fingerprint": "0" * 16}, "S18"),
    "rewrite_the_reason_of_a_letter": ("dead_letters", "doomed", {"reason": "lost"}, "S17"),
    "date_a_letter_before_its_death": ("dead_letters", "doomed", {"died_at": after(1)}, "S18"),
    "change_the_origin_of_a_run": ("runs", "ledgered", {"origin": "manual"}, "S18"),
    "change_the_request_of_a_run": ("runs", "ledgered", {"request": "e-other"}, "S18"),
    "change_the_lane_of_a_run": ("runs", "ledgered", {"lane": 2}, "S18"),
    "change_the_pool_of_a_run": ("runs", "ledgered", {"pool": "gpu"}, "S18 S19"),
    "give_a_run_to_another_worker": ("runs", "ledgered", {"owner": SECOND.id}, "S19"),
    "give_a_run_to_a_former_worker": ("runs", "ledgered", {"owner": FORMER.id}, "S19"),
    "raise_the_epoch_of_a_run": ("runs", "ledgered", {"epoch": 5}, "S19"),
    "give_an_attempt_to_another_worker": ("attempts", "flaky", {"worker": SECOND.id}, "S19"),
    "give_an_attempt_to_an_unknown_worker": ("attempts", "flaky", {"worker": 99}, "S19"),
    "give_an_attempt_of_the_dead_to_another_worker": ("attempts", "doomed", {"worker": SECOND.id}, "S17 S19"),
    "move_a_worker_to_another_pool": ("workers", "2", {"pool": "gpu"}, "S19"),
    "lower_the_epoch_of_a_worker": ("workers", "2", {"epoch": 0}, "S19"),
    "register_a_worker_late": ("workers", "2", {"since": after(30)}, "S19"),
    "end_a_lease_early": ("workers", "2", {"until": NOON - 20_000 * STEP}, "S19"),
    "end_a_lease_in_the_future": ("workers", "2", {"until": LATER}, "S16"),
    "beat_in_the_future": ("workers", "2", {"beat": LATER}, "S16"),
    "finish_in_the_future": ("runs", "once", {"finished_at": LATER}, "S16 S17"),
    "queue_in_the_future": ("runs", "alone1", {"queued_at": LATER}, "S16"),
    "queue_before_the_instant": ("runs", "once", {"queued_at": after(-60)}, "S16"),
    "forget_a_queueing": ("runs", "once", {"queued_at": None}, "S16"),
    "forget_a_start": ("runs", "ledgered", {"started_at": None}, "S16 S17 S19"),
    "finish_an_attempt_in_the_future": ("attempts", "flaky", {"finished_at": LATER}, "S3 S16"),
    "finish_an_attempt_long_after_its_run": ("attempts", "doomed", {"finished_at": LATER}, "S3 S16 S17"),
    "change_a_job_in_the_future": ("jobs", "j-now", {"changed_at": LATER}, "S16"),
    "create_a_job_in_the_future": ("jobs", "j-now", {"created_at": LATER}, "S16"),
    "replace_a_version_in_the_future": ("versions", "j-now", {"until": LATER}, "S16"),
    "stretch_a_range_into_the_future": (
        "runs",
        "alone1",
        {"last_scheduled_for": LATER, "instants": 3},
        "S13 S16",
    ),
    "turn_a_range_around": ("runs", "alone1", {"last_scheduled_for": after(5), "instants": 2}, "S13 S18 V1"),
    "count_more_instants_in_a_range": (
        "runs",
        "alone1",
        {"last_scheduled_for": after(20), "instants": 7},
        "S13",
    ),
    "set_a_deadline_that_no_job_can_have": ("runs", "once", {"start_by": NOON + timedelta(days=9999)}, "S7"),
    "become_due_after_the_start": ("runs", "once", {"due_at": after(5)}, "S7"),
    "give_a_success_a_reason": ("runs", "once", {"reason": "lost"}, "S17"),
    "date_a_letter_long_after_its_death": ("dead_letters", "doomed", {"died_at": LATER}, "S18"),
    "move_a_run_to_another_shard": ("runs", "once", {"shard": 3}, "S18"),
    "move_a_job_to_a_shard_that_does_not_exist": ("jobs", "j-alone", {"shard": SHARDS}, "S18"),
    "plan_with_zone_data_that_does_not_exist": ("runs", "once", {"zone_data": 7}, "S18"),
    "leave_a_run_to_its_target": ("runs", "once", {"owner": 0}, "S19"),
    "leave_a_run_to_its_target_under_its_epoch": ("runs", "once", {"owner": 0, "epoch": 0}, "S19"),
    "leave_an_attempt_to_its_target": ("attempts", "flaky", {"worker": 0}, "S19"),
    "take_a_run_from_its_worker": ("runs", "once", {"owner": None, "epoch": None}, "S19"),
    "give_a_run_to_a_worker_that_never_was": ("runs", "once", {"owner": -5}, "S19"),
    "leave_a_run_to_tasks": ("runs", "once", {"owner": -1, "epoch": 0}, "S19"),
    "forget_the_epoch_of_a_run": ("runs", "once", {"epoch": None}, "S19"),
}

FOUND_BY = {
    "call_before_the_start": "S16",
    "call_after_the_end": "S16",
    "call_with_another_number": "S15",
    "delete_all_traces_but_the_event_of_a_retry": "S15",
    "rewrite_the_end_of_an_error": "S17",
    "rewrite_a_result_that_no_target_noted": "S17",
    "invent_a_result": "S17",
    "move_a_start": "S17",
    "rewrite_the_error_of_a_retried_attempt": "S17",
    "rewrite_the_error_of_the_last_attempt": "S17",
    "rewrite_an_outcome_of_the_dead": "S17",
    "move_the_start_of_an_attempt": "S17",
    "move_the_end_of_an_attempt": "S17",
    "hide_a_death": "S6",
    "start_after_the_deadline": "S7",
    "stand_for_more_instants": "S18",
    "stand_for_a_range": "S13 S18",
    "refuse_without_a_reason": "S2",
    "forget_who_was_refused": "S2",
    "refuse_in_another_topic": "S5",
    "refuse_in_another_partition": "S5",
    "refuse_at_another_offset": "S5",
    "shrink_a_limit": "S8",
    "rename_a_job": "S2 T1",
    "move_a_job_to_another_tenant": "S2 S12 T1",
    "promise_one_attempt": "S11",
    "forbid_overlap": "S8",
    "exchange_the_processes_of_workers": "S19",
    "misdate_a_message": "S18",
    "send_another_version": "S18",
    "plan_with_a_version_that_does_not_exist": "S18",
    "put_a_message_under_another_run": "S6",
    "raise_the_fence_of_a_message": "S6",
    "hold_a_slot_that_is_not_taken": "S18",
    "take_a_slot_for_a_run_that_holds_none": "S18",
    "begin_after_the_lease_was_lost": "S16",
    "record_after_the_lease_was_lost": "S4 S6 S15 T1",
    "delete_a_job": "S2 S18",
    "raise_the_version_of_a_job": "S18",
    "pause_in_the_future": "S16",
    **{name: by for name, (_, _, _, by) in CHANGES.items()},
    **{f"leave_a_row_in_{table}": "V3" for table in QUEUES},
}
"""The invariants that must name each fault."""


def plants() -> dict[str, Plant]:
    """The faults by name."""
    made = {name: value for name, value in globals().items() if name in FOUND_BY}
    for name, (kind, row, changes, _) in CHANGES.items():
        made[name] = _changing(kind, row, changes)
    return made | {f"leave_a_row_in_{table}": _leaving(table) for table in QUEUES}


def _changing(kind: str, row: str, changes: dict[str, Any]) -> Plant:
    return lambda h: edit(h, kind, row, **changes)


def _leaving(table: str) -> Plant:
    return lambda h: h.left_over.update({table: 1})
