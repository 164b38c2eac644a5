"""What each statement does with timers of workflows, with workflow runs and with the runs of tasks.

Timers of kind 5 say that a workflow can go on: the run of a task has ended, or its own run is to be looked
at. A workflow run has owner -1 while it is open, and no message. The run of a task (origin `task`) has the
job, version and instant of its workflow run, so what finds runs by their job finds it, too.

`test_run_kinds.py` fails if a statement is missing here, or names other kinds, owners or origins than these:
the change that adds one decides what is right for workflows.
"""

from __future__ import annotations

from typing import Final

# ---- kinds of timers: what the statement names, and the answer for kind 5 ----

_INSTANTS: Final = "instants of schedules; a workflow that can go on is none"
_PLACE: Final = "given places or runs of timers that its caller has taken"
_RETRIES: Final = "as for any run: also the retry of a task"

TIMERS: Final[dict[str, tuple[str, str]]] = {
    "advance_timers": ("all", _PLACE),
    "await_callbacks": ("writes 4", "as for any run: also a task that reports later"),
    "cancel_runs": ("writes 5", "an open workflow run that is asked to stop gets one"),
    "claim_alike": ("given", "1 and 3: the claim loop has no pass for 5"),
    "claim_once": ("0", _INSTANTS),
    "claim_run_timers": ("given", "2 and 4: the workflow pass takes its own"),
    "close_callbacks": ("4", _RETRIES),
    "close_workflows": ("5", "those of the workflow run and its tasks go with it"),
    "count_paused_jobs": ("1 3", _INSTANTS),
    "count_strays": ("2 4 5", "of tasks, their runs have ended; of closed workflow runs, they are left over"),
    "create_jobs": ("writes timer_kind", _INSTANTS),
    "delete_cancelled_run_timers": ("all", "by run: nothing opens a workflow run that was cancelled before"),
    "delete_facts": ("all", _PLACE),
    "delete_fire_timers": ("0 1 3", "a cancel or an edit of the job does not forget what has ended"),
    "delete_retry_timers": ("2", "a pause does not forget what has ended"),
    "delete_timers": ("all", _PLACE),
    "explain_recent_runs": ("2 4", "a run that has ended does not wait"),
    "explain_runs": ("2 4 5", "without one or a live task, an open workflow run stands still"),
    "explain_slot_holders": ("1 3", _INSTANTS),
    "explain_timer": ("0 1 3", _INSTANTS),
    "find_abandoned_runs": ("2 4 5", "without one or a live task, an open workflow run stands still"),
    "find_jobs_to_pause_with_namespace": ("all", "a job with one is not over"),
    "find_jobs_to_plan": ("0", _INSTANTS),
    "find_jobs_to_resume": ("5", "parked ones are found although the schedule of their job is over"),
    "find_late_by_rule": ("0 1 3", _INSTANTS),
    "find_late_timers": ("0 1 3", _INSTANTS),
    "find_slot_holders": ("1 3", _INSTANTS),
    "find_stranded_jobs": ("0 1 3", _INSTANTS),
    "find_stranded_runs": ("2 4 5", "without one or a live task, an open workflow run stands still"),
    "find_stranded_timers": ("0 1 3", _INSTANTS),
    "find_unlocked_timers": ("0 1 3", _INSTANTS),
    "insert_facts": ("writes 5", "the run of a task has ended"),
    "insert_retries": ("writes 2", _RETRIES),
    "insert_workflow_timers": ("writes 5", "a workflow run is to be opened, or has a deadline"),
    "job_has_timer": ("0 1 3", _INSTANTS),
    "list_due_plans": ("given", "1 and 3: the claim loop has no pass for 5"),
    "list_limit_jobs": ("all", "a job with one may still run"),
    "list_missing_days": ("0 1 3", "the day of a workflow run exists"),
    "list_recurring_jobs": ("all", "those without a run: 5 has one"),
    "lock_backfill_timer": ("0 1 3", _INSTANTS),
    "lock_calendar_timers": ("1 3", _INSTANTS),
    "lock_due_timers_of_job": ("1 3", _INSTANTS),
    "lock_job_timers": ("all", "the first lock of a control waits for a pass that holds them"),
    "lock_planned_timers": ("given", "1 and 3: the claim loop has no pass for 5"),
    "lock_run_timers": ("all", "by run: before runs are locked"),
    "measure_due": ("0 1 2 3 4 5", "counted: they must not stay due"),
    "measure_silence": ("0 1 3", _INSTANTS),
    "move_zoned_timers": ("3", _INSTANTS),
    "park_runs": ("writes 2", _RETRIES),
    "pause_timers": ("0 1 3, writes case kind when 0 then 1 else kind end",
                     "the workflow pass parks what has ended; an open one must still be stopped in time"),
    "plan_one_time_timers": ("0 1", _INSTANTS),
    "postpone_facts": ("all", _PLACE),
    "postpone_run_timers": ("writes 2", _RETRIES),
    "read_due_heads": ("0 1 2 3 4 5", "watched: they must not stay due"),
    "read_next_facts": ("5", "wakes the workflow pass"),
    "read_next_timers": ("0 1 2 3 4", "the workflow pass is woken by its own statement"),
    "read_runs_left": ("1 3", _INSTANTS),
    "read_zoned_timers": ("3", _INSTANTS),
    "read_workflow_timers": ("5", "which ends have yet to be told"),
    "report_earlier_runs": ("writes 5", "the run of a task had ended before it was due"),
    "release_facts": ("5", "parked ones of a workflow run that was held are due now"),
    "replan_calendar_timers": ("1 3, writes kind", _INSTANTS),
    "resume_timers": ("1 3 5, writes kind", "parked ones are due now; a deadline was not parked"),
    "rewind_cancelled_timer": ("writes 1", _INSTANTS),
    "take_facts": ("5", "the workflow pass"),
}  # fmt: skip

KINDS_IN_CODE: Final[dict[str, str]] = {
    "services/noonmark/trigger/claim_loop.py": "claims 0 to 4: the workflow loop takes 5",
    "shared/internal/noonmark/store/backfills/steps.py": _INSTANTS,
    "shared/internal/noonmark/store/claims/alike.py": _INSTANTS,
    "shared/internal/noonmark/store/claims/claims.py": "passes 1 to 4 to the statements",
    "shared/internal/noonmark/store/documents/columns.py": _INSTANTS,
    "shared/internal/noonmark/store/jobs/change.py": _INSTANTS,
    "shared/internal/noonmark/store/schedules/zone_data.py": _INSTANTS,
    "shared/internal/noonmark/store/views/job_columns.py": "left out of the next instant of a job",
    "shared/internal/noonmark/store/views/paging.py": "the retry of a run, also of a task",
    "shared/internal/noonmark/store/views/stranded.py": _INSTANTS,
    "shared/internal/noonmark/store/views/why.py": _INSTANTS,
    "shared/internal/noonmark/telemetry/declared/labels.py": "no statement claims 5",
}
"""Python that names kinds of timers."""

# ---- owners of runs: what the statement compares, and the answer for -1 ----

_OF_A_JOB: Final = "the person who owns a job"
_BY_WORKER: Final = "not a worker's, so never this one"
_FREED: Final = "it is not open: waiting, queued or dead"

OWNERS: Final[dict[str, tuple[str, str]]] = {
    "await_callbacks": ("= %(worker)s, = case", _BY_WORKER),
    "cancel_runs": ("<> 0, = -1, = 0", "asked to stop, with a timer for it"),
    "cancel_unowned_runs": ("= %(worker)s", _BY_WORKER),
    "close_workflows": ("= -1", "ended"),
    "count_unfinished": ("= batch.worker", _BY_WORKER),
    "create_jobs": ("", _OF_A_JOB),
    "explain_path": ("= batch.worker", _BY_WORKER),
    "explain_runs": ("= -1, = 0", "stands still without tasks under way"),
    "find_abandoned_runs": ("<> 0, = -1", "abandoned without tasks under way; the branch of -1 comes first"),
    "find_recorded_outcomes": ("= %(worker)s", _BY_WORKER),
    "find_stranded_runs": ("= -1, = 0", "stands still without tasks under way"),
    "find_stuck_runs": ("= batch.worker", _BY_WORKER),
    "finish_detailed": ("= %(worker)s", _BY_WORKER),
    "finish_plain": ("= %(worker)s", _BY_WORKER),
    "insert_jobs": ("", _OF_A_JOB),
    "insert_one_off_version": ("", _OF_A_JOB),
    "job_is_unchanged": ("is not distinct from %(owner)s", _OF_A_JOB),
    "list_job_versions": ("", _OF_A_JOB),
    "list_worker_runs": ("= %(worker)s", _BY_WORKER),
    "lock_lost_runs": ("= any", "of workers without a lease, so never this one"),
    "measure_namespaces": ("= batch.worker", "not counted: its tasks are"),
    "measure_pools": ("= batch.worker", "not counted: its tasks are"),
    "open_callbacks": ("= %(worker)s", _BY_WORKER),
    "open_workflows": ("= -1", "opened"),
    "pause_runs": ("= null", _FREED),
    "promote_runs": ("= null", _FREED),
    "read_callback_runs": ("", "returned; a workflow run has no callback"),
    "read_held_runs": ("= %(worker)s", _BY_WORKER),
    "read_settled_runs": ("", "returned, and judged by S19"),
    "read_workflow_runs": ("", "read with its tasks, whoever owns it"),
    "redrive_runs": ("= null", _FREED),
    "requeue_lost_runs": ("= any, = runs.owner", "of workers without a lease, so never this one"),
    "requeue_runs": ("= null", _FREED),
    "requeue_unfinished_runs": ("= %(worker)s, = null", _BY_WORKER),
    "save_attempt_logs": ("= %(worker)s", _BY_WORKER),
    "save_run_notes": ("= %(worker)s", _BY_WORKER),
    "start_runs": ("= %(worker)s", _BY_WORKER),
    "update_job": ("= %(owner)s", _OF_A_JOB),
}

# ---- runs: the answer for those of tasks ----

_WITH_ITS_WORKFLOW: Final = "the runs of tasks, for their workflow run"
_OF_ITS_TASK: Final = "reads the work of the task instead of that of the job"
_BORN: Final = "writes other runs than those of tasks"

LEFT_OUT: Final[dict[str, str]] = {
    "claim_alike": _BORN,
    "count_backfill_unfinished": "runs of the backfill itself",
    "explain_recent_runs": "the newest runs of a job",
    "find_jobs_to_pause": "a workflow run has the verdict of its tasks",
    "find_long_runs": "what is usual for a workflow says nothing of its tasks",
    "find_slot_holders": "the slot of a job is its workflow run's",
    "find_workflow_run": "the workflow run of a task",
    "keep_slots": "the slot of a job is its workflow run's",
    "list_paused_runs": "a resume lets them go without the slot of their job",
    "lock_backfill_runs": "runs of the backfill itself",
    "read_backfill_ledger": "whether an instant has run",
    "read_instants": "whether an instant has run",
    "read_slot_queues": "what waits for the slot of a job",
}
"""Statements that leave the runs of tasks out; each says so by the origin."""

OWN_WAY: Final[dict[str, str]] = {
    "close_workflows": _WITH_ITS_WORKFLOW,
    "count_strays": "a timer about one that has ended is none left over",
    "explain_runs": _WITH_ITS_WORKFLOW,
    "find_abandoned_runs": _WITH_ITS_WORKFLOW,
    "find_stranded_runs": _WITH_ITS_WORKFLOW,
    "insert_task_runs": "writes them",
    "list_task_runs": _WITH_ITS_WORKFLOW,
    "list_task_states": _WITH_ITS_WORKFLOW,
    "list_wait_candidates": "neither limits nor overlap of the job are theirs; the cap of the namespace is",
    "read_callback_runs": _OF_ITS_TASK,
    "read_held_runs": _OF_ITS_TASK,
    "read_task_results": _WITH_ITS_WORKFLOW,
    "read_workflow_runs": _WITH_ITS_WORKFLOW,
    "release_facts": _WITH_ITS_WORKFLOW,
    "report_earlier_runs": _WITH_ITS_WORKFLOW,
    "requeue_lost_runs": "the delivery is that of the task",
    "take_facts": _WITH_ITS_WORKFLOW,
}
"""Statements that do something else for the runs of tasks; each names their origin."""

ALL_OF_A_JOB: Final[dict[str, str]] = {
    "find_jobs_to_pause_with_namespace": "a job with any unfinished run is not over",
    "find_repeated_runs": "compares the whole key, with origin and request",
    "find_stranded_jobs": "a job with any run had its instant",
    "list_limit_jobs": "a job with any unfinished run may still run",
    "list_runs_of_jobs": "of runs that it is given",
    "lock_unfinished_runs": "a pause has them wait; a cancel of the job leaves them to their workflow run",
}
"""Statements that find runs by their job and treat those of tasks as all others, with the reason."""

AS_ANY_RUN: Final = frozenset(
    [
        "await_callbacks",
        "cancel_runs",
        "cancel_unowned_runs",
        "claim_once",
        "count_unfinished",
        "create_jobs",
        "delete_late_runs",
        "discard_runs",
        "enqueue_gated_runs",
        "expire_starts",
        "explain_path",
        "find_locked_runs",
        "find_lost_messages",
        "find_missing_runs",
        "find_recorded_outcomes",
        "find_step_end",
        "find_stranded_messages",
        "find_stuck_runs",
        "finish_detailed",
        "finish_plain",
        "insert_facts",
        "insert_immediate_runs",
        "insert_runs",
        "list_jobs_of_runs",
        "list_worker_runs",
        "lock_dead_runs",
        "lock_lost_runs",
        "lock_queued_workflows",
        "lock_runs_in_states",
        "lock_slot_holders",
        "measure_namespaces",
        "measure_pools",
        "measure_queues",
        "open_callbacks",
        "open_workflows",
        "park_runs",
        "pause_runs",
        "postpone_run_timers",
        "promote_runs",
        "prune_callbacks",
        "read_letters_without_run",
        "read_losses",
        "read_settled_runs",
        "redrive_runs",
        "requeue_runs",
        "requeue_unfinished_runs",
        "resend_vanished",
        "save_attempt_logs",
        "save_run_notes",
        "skip_waits",
        "start_runs",
        "update_run_wait_reasons",
    ]
)
"""Statements that are given runs, or find them by what belongs to one: for them, a task's run is as any."""

WALKED: Final = {"find_late_runs": "due at the instant of their workflow run, so never late by it"}
"""Statements that read runs under another name and leave those of tasks out."""

ORIGINS_IN_CODE: Final[dict[str, str]] = {
    "services/noonmark/api/routes/runs/control.py": "a dead task is redriven with its workflow run",
    "services/noonmark/api/routes/runs/holds.py": "the run of a task is not held: its workflow run is",
    "services/noonmark/api/routes/runs/tasks.py": "only workflow runs have tasks",
    "services/noonmark/observer/event_parsing.py": "outcomes of tasks are left out",
    "services/noonmark/trigger/sweep_loop.py": "a lost task that is dead has no letter",
    "shared/sdk/noonmark/handlers/context.py": "a redriven task has the idempotency key of its first run",
    "services/noonmark/worker/engine/recorder.py": "dead tasks are no dead letters, and are counted as such",
    "services/noonmark/worker/engine/start_delays.py": "starts of tasks are measured from when they were due",
    "shared/internal/noonmark/attempts/running_attempt.py": "time limits from the instant are not theirs",
    "shared/internal/noonmark/core/why/endings.py": "names of origins",
    "shared/internal/noonmark/core/why/facts.py": "the default of a fact",
    "shared/internal/noonmark/core/why/jobs.py": "an open workflow run",
    "shared/internal/noonmark/core/why/progress.py": "an open workflow run has no worker",
    "shared/internal/noonmark/store/backfills/steps.py": _BORN,
    "shared/internal/noonmark/store/claims/planned_runs.py": _BORN,
    "shared/internal/noonmark/store/jobs/change.py": _BORN,
    "shared/internal/noonmark/store/jobs/pause_and_cancel.py": "a cancel of the job leaves them out",
    "shared/internal/noonmark/store/jobs/skipped_instants.py": _BORN,
    "shared/internal/noonmark/store/outcomes/events.py": "their ends go to their workflow; no letter",
    "shared/internal/noonmark/store/runs/failed_attempts.py": "time limits count from when the task was due",
    "shared/internal/noonmark/store/runs/starts.py": _OF_ITS_TASK,
    "shared/internal/noonmark/store/views/attempts.py": "a workflow run has no attempts",
    "shared/internal/noonmark/store/views/backfills.py": "runs of the backfill itself",
    "shared/internal/noonmark/store/views/job_columns.py": "left out of the last run of a job",
    "shared/internal/noonmark/store/views/runs.py": "listed on request",
    "shared/internal/noonmark/store/views/task_runs.py": _WITH_ITS_WORKFLOW,
    "shared/internal/noonmark/store/views/why.py": "of the newest run of a job, which is none of a task",
    "shared/internal/noonmark/store/views/why_workflows.py": _WITH_ITS_WORKFLOW,
    "shared/internal/noonmark/store/workflows/instances.py": "those of a backfill have the lowest lane",
    "shared/internal/noonmark/store/workflows/writing.py": "writes them",
    "services/noonmark/cli/verify/slices.py": "a target that reports",
    "shared/tools/noonmark/verify/case.py": "runs of the schedule",
    "shared/tools/noonmark/verify/copies.py": "-1 for workflow runs only",
    "shared/tools/noonmark/verify/history.py": "which rules judge a run",
}
"""Python that names origins of runs, or owners that are no workers."""
