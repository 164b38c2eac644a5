"""Every table and column of the database, and which planted fault stands for it, or why none does.

`test_columns.py` fails if a table or a column is missing here: the change that adds one decides how it is checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple


class Planted(NamedTuple):
    """A column that is checked.

    Attributes:
        rows: the list of the history that contains it.
        fields: its fields there.
        faults: planted faults that change it.
    """

    rows: str
    fields: tuple[str, ...]
    faults: tuple[str, ...]


def _at(rows: str, fields: str, faults: str) -> Planted:
    return Planted(rows, tuple(fields.split()), tuple(faults.split()))


Columns = Mapping[str, Planted | str]
"""By column: the faults, or the reason why none is planted."""

_PROSE: Final = "text for people; nothing acts on it"
_WORK: Final = "decides what runs; the target's calls and results show it (T2, S17)"
_KEY: Final = "key of its table; a changed one is a row that is gone and one too many (S1, V1)"
_DATE: Final = "a date for people and for pruning"


def _queue(table: str, columns: str) -> dict[str, Planted | str]:
    """A table that is empty at rest: one fault stands for the whole row."""
    row = _at("left_over", table, f"leave_a_row_in_{table}")
    return dict.fromkeys(columns.split(), row)


LEDGER: Final[dict[str, Columns]] = {
    "jobs": {
        "id": _at("jobs", "id", "delete_a_job"),
        "namespace": _at("jobs", "namespace", "move_a_job_to_another_tenant"),
        "name": _at("jobs", "name", "rename_a_job"),
        "kind": _WORK,
        "handler": _WORK,
        "lane": "copied to runs, where it is checked (S14, S18)",
        "pool": "copied to runs, where it is checked (S18, S19)",
        "shard": _at("jobs", "shard", "move_a_job_to_a_shard_that_does_not_exist"),
        "schedule": _at("versions", "schedule", "silent"),
        "policy": _at("versions", "overlap", "forbid_overlap"),
        "work": _at("versions", "delivery max_attempts", "promise_one_attempt"),
        "labels": _PROSE,
        "description": _PROSE,
        "owner": _PROSE,
        "idempotency_key": "unique index; a submission that is repeated must not add a job (S1, T1)",
        "unique_name": "unique index; a submission that is repeated must not add a job (S1, T1)",
        "state": _at("jobs", "state", "start_after_the_jobs_cancel"),
        "state_reason": _PROSE,
        "paused_at": _at("pauses", "since until", "start_in_a_pause pause_in_the_future"),
        "paused_by": "decides which resume ends a pause; a job that stays paused is a lasting cause (V2)",
        "resumed_at": _at("pauses", "since until", "start_in_a_pause"),
        "resume_choice": "what happens to deferred instants is a choice; each has a run or a reason (V1)",
        "version": _at("versions", "version", "raise_the_version_of_a_job"),
        "event_sequence": "guards the order of submissions at their arrival; tests/integration/intake",
        "created_at": _at("jobs", "created_at", "create_a_job_in_the_future"),
        "updated_at": _at("jobs", "changed_at", "start_after_the_jobs_cancel change_a_job_in_the_future"),
        "traceparent": _PROSE,
    },
    "job_versions": {
        "job_id": _at("runs", "version", "plan_with_a_version_that_does_not_exist"),
        "version": _at("runs", "version", "plan_with_a_version_that_does_not_exist"),
        "name": _PROSE,
        "kind": _WORK,
        "handler": _WORK,
        "lane": "copied to runs, where it is checked (S14, S18)",
        "pool": "copied to runs, where it is checked (S18, S19)",
        "work": _at("versions", "delivery max_attempts", "promise_one_attempt"),
        "schedule": _at("versions", "schedule", "silent"),
        "policy": _at("versions", "overlap", "forbid_overlap"),
        "labels": _PROSE,
        "description": _PROSE,
        "owner": _PROSE,
        "replaced_at": _at("versions", "until", "replace_a_version_in_the_future"),
    },
    "runs": {
        "id": _at("runs", "id", "double drop"),
        "scheduled_for": _at("runs", "scheduled_for", "shift"),
        "queued_at": _at(
            "runs",
            "queued_at",
            "start_before_queueing queue_in_the_future queue_before_the_instant forget_a_queueing",
        ),
        "started_at": _at("runs", "started_at", "move_a_start start_early forget_a_start"),
        "finished_at": _at(
            "runs",
            "finished_at",
            "finish_before_start move_a_finish end_without_a_date finish_in_the_future",
        ),
        "start_by": _at("runs", "start_by", "start_after_the_deadline set_a_deadline_that_no_job_can_have"),
        "last_scheduled_for": _at(
            "runs",
            "last_scheduled_for",
            "stand_for_a_range turn_a_range_around stretch_a_range_into_the_future",
        ),
        "job_id": _at("runs", "job", "swap_jobs"),
        "owner": _at(
            "runs",
            "owner",
            "give_a_run_to_another_worker give_a_run_to_a_former_worker give_a_run_to_a_worker_that_never_was"
            " leave_a_run_to_its_target take_a_run_from_its_worker leave_a_run_to_tasks",
        ),
        "job_version": _at("runs", "version", "plan_with_a_version_that_does_not_exist"),
        "epoch": _at(
            "runs",
            "epoch",
            "raise_the_epoch_of_a_run forget_the_epoch_of_a_run leave_a_run_to_its_target_under_its_epoch",
        ),
        "fence": _at("runs", "fence", "raise_a_fence lower_a_fence"),
        "attempt": _at("runs", "attempt", "lower_the_count raise_the_count"),
        "instants": _at("runs", "instants", "stand_for_more_instants count_more_instants_in_a_range"),
        "lane": _at("runs", "lane", "change_the_lane_of_a_run"),
        "shard": _at("runs", "shard", "move_a_run_to_another_shard"),
        "losses": _at("runs", "losses", "lower_the_losses"),
        "zone_data": _at("runs", "zone_data", "plan_with_zone_data_that_does_not_exist"),
        "holds_slot": _at(
            "runs", "holds_slot", "hold_a_slot_that_is_not_taken take_a_slot_for_a_run_that_holds_none"
        ),
        "state": _at("runs", "state", "end_wrongly stuck bury_a_redriven_success"),
        "reason": _at("runs", "reason", "rewrite_a_reason skip_for_no_reason give_a_success_a_reason"),
        "origin": _at("runs", "origin", "change_the_origin_of_a_run"),
        "request_id": _at("runs", "request", "change_the_request_of_a_run"),
        "namespace": _at("runs", "namespace", "cross_namespace_run"),
        "pool": _at("runs", "pool", "change_the_pool_of_a_run"),
        "result": _at(
            "runs",
            "result",
            "rewrite_a_result delete_a_result rewrite_a_result_that_no_target_noted invent_a_result",
        ),
        "error": _at("runs", "error", "rewrite_an_error rewrite_the_end_of_an_error"),
        "due_at": _at("runs", "due_at", "become_due_after_the_start"),
    },
    "attempts": {
        "run_id": _at("attempts", "run", "delete_all_attempts delete_a_loss"),
        "scheduled_for": _at("attempts", "scheduled_for", "move_an_instant_of_an_attempt"),
        "fence": _at("attempts", "fence", "delete_the_first_attempt delete_the_last_attempt"),
        "attempt": _at("attempts", "attempt", "renumber_without_a_redrive"),
        "worker": _at(
            "attempts",
            "worker",
            "give_an_attempt_to_another_worker give_an_attempt_to_an_unknown_worker"
            " leave_an_attempt_to_its_target",
        ),
        "outcome": _at(
            "attempts", "outcome", "hand_back_the_attempt_of_the_dead rewrite_an_outcome_of_the_dead"
        ),
        "error": _at(
            "attempts",
            "error",
            "erase_the_error_of_an_attempt rewrite_the_error_of_a_retried_attempt"
            " rewrite_the_error_of_the_last_attempt",
        ),
        "started_at": _at("attempts", "started_at", "move_the_start_of_an_attempt"),
        "finished_at": _at(
            "attempts",
            "finished_at",
            "finish_an_attempt_before_its_start move_the_end_of_an_attempt finish_an_attempt_in_the_future"
            " finish_an_attempt_long_after_its_run",
        ),
    },
    "dead_letters": {
        "run_id": _at("dead_letters", "run", "letter_missing letter_for_the_living"),
        "scheduled_for": _at("dead_letters", "scheduled_for", "move_an_instant_of_a_letter"),
        "job_id": _at("dead_letters", "job", "move_a_letter_to_another_job"),
        "namespace": _at("dead_letters", "namespace", "move_a_letter_to_another_tenant"),
        "attempts": _at("dead_letters", "attempts", "rewrite_a_letter"),
        "reason": _at("dead_letters", "reason", "rewrite_the_reason_of_a_letter"),
        "error": _at("dead_letters", "error", "erase_the_error_of_a_letter"),
        "kind": _at("dead_letters", "kind", "change_the_kind_of_a_letter"),
        "name": _at("dead_letters", "name", "change_the_name_of_a_letter"),
        "fingerprint": _at("dead_letters", "fingerprint", "change_the_cause_of_a_letter"),
        "died_at": _at(
            "dead_letters", "died_at", "date_a_letter_before_its_death date_a_letter_long_after_its_death"
        ),
    },
    "rejections": {
        "id": _KEY,
        "topic": _at("rejections", "topic", "refuse_in_another_topic"),
        "partition": _at("rejections", "partition", "refuse_in_another_partition"),
        "record_offset": _at("rejections", "offset", "refuse_at_another_offset"),
        "event_source": "part of the id of an event; the ids of the sources of a test are compared",
        "event_id": _at("rejections", "event", "forget_who_was_refused refuse_a_good_event"),
        "reason": _at("rejections", "reason", "refuse_without_a_reason"),
        "errors": "the reason in detail, for people; tests/integration/intake",
        "value": "a copy of the record for people; tests/integration/intake",
        "truncated": "whether the copy is complete; tests/integration/intake",
        "received_at": _DATE,
    },
    "inbox": {
        "event_key": "hash of source and event_id",
        "received_at": _DATE,
        "source": "selects the events of the test; an event under another source is missing (S2)",
        "event_id": _at("known_events", "", "lose_an_event swallow_a_bad_event"),
    },
    "outbox": {
        **_queue("outbox", "seq slice lane topic key value headers refusal pool job_id job_ids"),
        "created_at": _at("outbox_seconds", "", "old_outbox"),
        "run_id": _at("messages", "run", "outbox_missing put_a_message_under_another_run"),
        "scheduled_for": _at("messages", "scheduled_for", "misdate_a_message"),
        "fence": _at("messages", "fence", "raise_the_fence_of_a_message"),
        "job_version": _at("messages", "job_version", "send_another_version"),
        "namespace": _at("messages", "namespace", "cross_namespace"),
        "run_ids": _at("messages", "run", "outbox_missing put_a_message_under_another_run"),
        "instants": _at("messages", "scheduled_for", "misdate_a_message"),
        "job_versions": _at("messages", "job_version", "send_another_version"),
    },
    "workers": {
        "id": _at("attempts", "worker", "give_an_attempt_to_an_unknown_worker"),
        "pool": _at("workers", "pool", "move_a_worker_to_another_pool"),
        "host": _PROSE,
        "pid": _at("workers", "pid", "exchange_the_processes_of_workers"),
        "epoch": _at("workers", "epoch", "lower_the_epoch_of_a_worker"),
        "lease_seconds": "how soon a loss is noticed; a late one shows as standstill (V2)",
        "started_at": _at("workers", "since", "register_a_worker_late"),
        "beat_at": _at("workers", "beat", "beat_in_the_future"),
        "lapsed_at": _at("workers", "until", "end_a_lease_early end_a_lease_in_the_future"),
        "left_at": _at("workers", "until", "end_a_lease_early end_a_lease_in_the_future"),
        "catalogue": "what a worker can run; a run on a wrong one fails and is recorded so",
        "slots": "for the display of load; the number of calls at once is the worker's own",
        "draining_at": "for the display of a drain",
        "release": "for people",
        "capabilities": "which formats are sent to its pool; tests/integration/dispatcher/test_runs_in_messages.py",
    },
    "limits": {
        "namespace": "key; S8 counts under it",
        "name": "key; S8 counts under it",
        "max_running": _at("limits", "", "shrink_a_limit"),
        "rate_count": "rates are spread by tokens; tests/integration/store/test_promotion.py measures them",
        "rate_seconds": "rates are spread by tokens; tests/integration/store/test_promotion.py measures them",
        "burst": "rates are spread by tokens; tests/integration/store/test_promotion.py measures them",
        "updated_at": _DATE,
    },
    "timers": _queue(
        "timers",
        "fire_at scheduled_for after_at job_id run_id job_version runs_left after_offset shard lane kind"
        " namespace pool",
    ),
    "start_batches": _queue(
        "start_batches",
        "id worker epoch first_scheduled_for last_scheduled_for started_at overdue_at run_ids",
    ),
    "slots": _queue("slots", "key slot_no run_id taken_at"),
    "limit_slots": _queue("limit_slots", "key slot_no run_id namespace limit_name"),
    "waits": _queue(
        "waits", "run_id scheduled_for job_id reason since key lane namespace limit_name limit_key start_by"
    ),
    "workflows": {
        **_queue("workflows", "scheduled_for job_id job_version shard opened_at held_at"),
        "run_id": _at("open_states", "run", "leave_a_state_of_a_closed_workflow"),
        "generation": _at("open_states", "generation", "keep_the_state_of_another_generation"),
        "progress": _at("open_states", "progress", "miscount_a_task"),
        "choices": _at("open_states", "choices", "turn_a_choice_around"),
        "stopping": "decides which skips a stop explains (W3); tests/property/test_workflow_histories.py",
    },
}
"""Tables that say what was asked for and what happened."""

OTHERS: Final[dict[str, str]] = {
    "alert_deliveries": "alerts; derived from events",
    "alerts": "alerts; derived from events",
    "api_keys": "access",
    "attempt_logs": "output of handlers for people",
    "audit_log": "access; triggers refuse changes",
    "backfills": "requests that create runs; the runs are checked (S1, S13)",
    "buckets": "tokens of rate limits, refilled by time",
    "calendar_contents": "input of schedules, found by its digest",
    "calendars": "input of schedules, found by its digest",
    "callbacks": "chaos rounds have no target that reports later; tests/integration/store/test_callbacks.py",
    "idempotency": "responses of the API for repeated requests",
    "install": "one row of constants",
    "job_labels": "index of jobs, kept by triggers",
    "job_stats": "alerts; derived from events",
    "late_rules": "index of jobs, kept by triggers",
    "late_runs": "alerts; derived from runs",
    "lease_watch": "bookkeeping of the lease pass",
    "members": "owners of shards; measured at the processes (V4)",
    "namespaces": "settings of tenants",
    "observer_events": "alerts; position of the observer",
    "observer_offsets": "alerts; position of the observer",
    "observer_state": "alerts; position of the observer",
    "outcome_windows": "used by release 0.2 only",
    "pool_keys": "access",
    "pools": "settings",
    "process_progress": "display of processes",
    "run_notes": "progress and checkpoints of handlers",
    "signing_keys": "access",
    "tombstones": "order of submissions about deleted jobs; tests/integration/intake",
    "topic_progress": "bookkeeping of the relay",
    "workflow_tasks": "compiled from the document of its version; what tasks did is compared with it (W2 to W9)",
    "zone_data": "input of schedules",
}
"""Tables that are not part of the ledger, with the reason."""


def planted() -> Iterator[tuple[str, str, Planted]]:
    """(table, column, faults) of every column that is checked."""
    for table, columns in LEDGER.items():
        for column, said in columns.items():
            if isinstance(said, Planted):
                yield table, column, said
