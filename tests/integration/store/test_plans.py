"""How Postgres executes every hot statement, on statistics that are right, missing or of an empty table.

A statement is given real values, planned as in production (no prepared statement survives), executed and
rolled back. It must visit about as many rows as its batch has, whatever the table holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from tests.integration.store.workflow_plans import CASES as OF_WORKFLOWS
from tests.integration.store.world import EVERY_SHARD, World, open_world

from noonmark.core.ids import uuid7_batch
from noonmark.core.zones.zones import zone_data_version
from noonmark.store.alerts import statistics
from noonmark.store.database import statements
from noonmark.store.database.columns import fenced_span
from noonmark.store.database.planned_once import (
    PLANNED_ONCE,
    RARE_CONFLICTS,
    function_of,
    numbered,
    planned_once,
)
from noonmark.store.database.statements import statement
from noonmark.store.documents.columns import NEVER

ROWS = 24_000
BATCH = 400
WATCHED = ("timers", "outbox", "runs", "jobs", "waits", "slots", "limit_slots", "job_stats")

Plan = Mapping[str, Any]

_RARE = {
    "find_stranded_jobs": "reads all jobs, for people; the caller limits the time",
    "find_stranded_timers": "reads all timers, for people; the caller limits the time",
    "find_stranded_runs": "reads the ledger, for people; the caller limits the time",
    "find_stranded_messages": "reads the outbox, for people; the caller limits the time",
    "job_has_timer": "the timer of one job by its index",
    "read_held_runs": "a few runs by their keys, when a worker is killed",
    "read_losses": "a few runs by their keys, when a worker is lost again",
    "resend_vanished": "reads the days of the look-back, every five minutes, while a group has passed its topic",
    "read_acknowledged_watermark": "reads the outbox, every 5 s, in the leading dispatcher",
    "insert_immediate_runs": "inserts only",
    "find_dead_letters": "reads the dead letters, for people; `runs` is a parameter of it",
    "create_jobs": "inserts only",
    "insert_jobs": "inserts only",
    "explain_job": "one job by its key",
    "explain_path": "counts what one pool runs and the outbox up to its cap, for people",
    "rewind_cancelled_timer": "one job by its key",
    "insert_timers": "inserts only",
    "insert_runs": "inserts only",
    "insert_task_runs": "inserts only",
    "insert_workflow_timers": "inserts only",
    "insert_retries": "inserts only",
    "insert_events": "inserts only",
    "insert_emits": "inserts only",
    "enqueue_run_messages": "inserts only",
    "find_job_conflicts": "looks up the few jobs that were left out",
    "update_job": "one job by its key",
    "set_job_state": "one job by its key",
    "lock_job": "one job by its key",
    "job_is_unchanged": "one job by its key",
    "insert_one_off_version": "one job by its key",
    "list_job_versions": "one job by its key, for people",
    "read_runs_left": "the timer of one job by its index",
    "list_namespaces": "jumps through the index on names, for people",
    "count_namespace_jobs": "reads the recurring jobs of one namespace, for people",
    "insert_waits": "inserts only",
    "reset_observer": "deletes all statistics, when a person rebuilds them",
    "acquire_slots": "inserts only",
    "acquire_limit_slots": "inserts only",
    "count_waits": "reads all waits, every 5 s, in the leading trigger",
    "insert_traces": "a few jobs by their keys, where a client sent a trace along",
    "register_worker": "inserts only; `slots` is a column of it",
    "measure_due": "counts in the index of due timers, up to its cap a shard, every 5 s, in the leading trigger",
    "measure_pools": "reads what workers hold, every 5 s, in the leading trigger",
    "measure_namespaces": "reads all waits and what workers hold, every 15 s, in the leading trigger",
    "measure_dead_rows": "reads the statistics; names of tables are values in it",
    "list_limits": "reads all limits, slots and waits once, for people",
    "count_quota_jobs": "counts in the index on names, no further than the quota of a namespace",
    "list_limit_jobs": "reads the jobs of one namespace once, for people",
    "list_expired_days": "reads the catalogue, not the ledger",
    "list_calendars": "reads all jobs once, for people",
    "prune_callbacks": "reads the callbacks that are older than an hour, once a minute, in the leading trigger",
    "read_zoned_timers": "reads all zoned timers, once for each release of the zone data",
    "activate_zone_data": "writes the report of an activation; `timers` is a column of it",
    "list_zone_data": "reads the reports of activations; `timers` is a column of them",
    "list_ledger_days": "reads the catalogue, not the ledger",
    "find_step_end": "reads the ids of one step of a check, for people; the caller pauses between steps",
    "find_letters_end": "reads the ids of one step of a check, for people; the caller pauses between steps",
    "read_settled_runs": "reads the runs of one step of a check, for people; the caller pauses between steps",
    "read_letters_without_run": "reads the dead letters of one step of a check, for people",
    "list_recurring_jobs": "reads the recurring jobs by name, some at a time, for people",
    "find_unknown_namespaces": "looks up the names that a person passed, once for each check",
    "read_unsent_events": "reads the events of the outbox by its key, some at a time, for people",
    "count_workflow_tasks": "counts the tasks of versions by their key, in one step of a check, for people",
    "measure_queues": "counts up to its cap, once for each check, for people",
}
"""Statements on the watched tables without a case of their own, and why."""

_MAY_READ_ALL = {
    # An order about runs reads the unsent rows of its slices: `outbox` has no index by run, which every claim
    # would pay for, and its length is capped.
    "pause_runs": {"outbox"},
    "cancel_runs": {"outbox"},
    "find_lost_messages": {"outbox"},
    # Which jobs use a calendar is asked when a person changes it; an index would be paid for by every create.
    "list_calendar_jobs": {"jobs"},
    "update_calendar_jobs": {"jobs"},
    "lock_calendar_timers": {"jobs"},
}
"""Tables that a statement for people may read from end to end."""


class Filled:
    """A database with a backlog: due timers of each kind, unsent messages, queued and running runs."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.db = world.db
        self.worker = world.worker()

    def fill(self) -> None:
        self.db.execute(
            """insert into jobs (id, namespace, kind, handler, lane, pool, shard, schedule, work, unique_name, state, version,
                                 created_at, updated_at)
               select noonmark_uuid7(), 'tests', 'python', 'h', n %% 3, 'default', n %% 4,
                      case when n %% %s = 0 then '{"calendars": {"exclude": [["holidays", "x"]]}}'::jsonb end,
                      '{"timeout_seconds":60}', false, 'active', 1, now(), now()
               from generate_series(1, %s) n""",
            [ROWS // BATCH + 1, ROWS],
        )
        # A lane stands for a kind here: 0 one-time, 1 planned (in the last shard zoned), 2 retries.
        self.db.execute(
            """insert into timers (fire_at, scheduled_for, after_at, after_offset, job_id, run_id, job_version, shard, lane,
                                   kind, namespace, pool)
               select now() - interval '10 minutes', now(), now() - interval '1 day', 3600, id, case lane when 2 then id end,
                      1, shard, lane, case when lane = 1 and shard = 3 then 3 else lane end, 'tests', 'default'
               from jobs"""
        )
        self.db.execute(
            """insert into runs (id, scheduled_for, queued_at, job_id, job_version, fence, lane, shard, state, origin,
                                 namespace, pool, owner, epoch, started_at)
               select noonmark_uuid7(), now(), now(), id, 1, 1, lane, shard,
                      case when shard < 2 then 'queued' else 'running' end, 'schedule', namespace, pool, %s, 1, now()
               from jobs""",
            [self.worker.worker],
        )
        self.db.execute(
            """insert into outbox (slice, lane, created_at, run_id, job_id, scheduled_for, fence, job_version, namespace, pool)
               select shard, lane, now(), id, job_id, scheduled_for, 1, 1, namespace, pool from runs"""
        )
        self.db.execute(
            """insert into start_batches (worker, epoch, first_scheduled_for, last_scheduled_for, started_at, overdue_at,
                                          run_ids)
               select %s, 1, min(scheduled_for), max(scheduled_for), min(started_at), now() + interval '1 h', array_agg(id)
               from (select *, row_number() over () / 100 as batch from runs where state = 'running') as r
               group by batch""",
            [self.worker.worker],
        )

        self.db.execute(
            """insert into observer_state (heard_at, walked_to, ruled_to, died_until)
               values (now(), '00000000-0000-0000-0000-000000000000',
                       '00000000-0000-0000-0000-000000000000', '-infinity')"""
        )
        self.db.execute(
            """insert into late_runs (run_id, scheduled_for, job_id, namespace, pool, recurring)
               select id, scheduled_for, job_id, namespace, pool, true from runs limit 100"""
        )
        self.db.execute(
            "insert into late_rules (job_id, late_after_seconds) select id, 60 from jobs limit 100"
        )
        self.db.execute(
            """insert into job_stats (job_id, namespace, kind, runs, usual_seconds, failures)
               select id, namespace, kind, 9, 1, case when row_number() over () <= 300 then 3 else 0 end from jobs"""
        )
        self.db.execute(
            """insert into callbacks (run_id, scheduled_for, job_id, fence, worker, token_hash, opened_at, deadline_at)
               select id, scheduled_for, job_id, 1, %s, sha256(uuid_send(id)), now(), now() from runs where state = 'running'""",
            [self.worker.worker],
        )
        self.db.execute(
            """insert into timers (fire_at, scheduled_for, job_id, run_id, job_version, shard, lane, kind, namespace, pool)
               select now(), scheduled_for, job_id, id, 1, shard, lane, 4, namespace, pool from runs where state = 'running'"""
        )

        self.fill_lines()

    def fill_lines(self) -> None:
        """Runs that wait for room in 40 lines, and slots that others hold."""
        self.db.execute(
            """insert into runs (id, scheduled_for, job_id, job_version, fence, lane, shard, state, reason, origin, request_id,
                                 namespace, pool, start_by)
               select noonmark_uuid7(), now(), id, 1, 1, lane, shard, 'waiting', 'limit', 'manual', 'waits', namespace, pool,
                      now() - interval '1 s'
               from jobs"""
        )
        self.db.execute(
            """insert into waits (run_id, scheduled_for, job_id, reason, since, key, lane, namespace, limit_name, start_by)
               select id, scheduled_for, job_id, 'limit', now(), lpad(to_hex(row_number() over () % 40 + 1), 32, '0')::uuid,
                      lane, namespace, 'api', start_by
               from runs where state = 'waiting'"""
        )
        self.db.execute(
            """insert into limit_slots (key, slot_no, run_id, namespace, limit_name)
               select lpad(to_hex(n % 40 + 1), 32, '0')::uuid, n / 40, id, 'tests', 'api'
               from (select id, row_number() over () as n from runs where state = 'running') as live"""
        )
        self.db.execute("insert into slots select job_id, 0, id, now() from runs where state = 'queued'")

    def choose(self) -> None:
        """The rows that the cases are about."""

        def few(query: str) -> list[tuple[Any, ...]]:
            return self.db.execute(f"{query} limit {BATCH}").fetchall()

        self.queued = few(
            "select id, scheduled_for, job_id from runs where state = 'queued' order by id desc"
        )
        self.running = few(
            "select id, scheduled_for, job_id from runs where state = 'running' order by id desc"
        )
        self.timers = few("select ctid::text, job_id from timers where kind = 1")
        self.zoned = few("select job_id, scheduled_for, after_at from timers where kind = 3")
        self.outbox = few("select ctid::text, seq from outbox where slice = 2")
        self.waiting = few(
            "select id, scheduled_for, job_id from runs where state = 'waiting' order by id desc"
        )
        self.started_at = self.world.value("select min(started_at) from runs")

    @property
    def groups(self) -> dict[str, Any]:
        """Two plans, one of them of timers that are due."""
        schedule = self.world.value("select schedule::text from jobs where schedule is not null limit 1")
        at, after_at = self.world.db.execute(
            "select scheduled_for, after_at from timers where kind = 1 limit 1"
        ).fetchone()
        next_at = self.started_at + timedelta(hours=1)
        return {
            "at": [at, next_at],
            "after_at": [after_at, None],
            "after_offset": [3600, None],
            "schedules": [schedule, schedule],
            "policies": [None, "{}"],
            "takes_slot": [True, False],
            "next_at": [next_at, next_at],
            "next_after_at": [at, None],
            "next_after_offset": [3600, None],
            "lane": 1,
            "named": False,
        }

    def cases(self) -> dict[str, dict[str, Any]]:
        me = self.worker._asdict()
        queued, running = span(self.queued), span(self.running)
        running_fences = fenced_span([(*row[:2], 1) for row in self.running])
        jobs = [row[2] for row in self.queued]
        small = {**span(self.queued[:5]), "shards": [0]}
        due = {"shards": list(EVERY_SHARD), "limit": BATCH // 4}
        details = json.dumps({str(row[0]): [1, "dead", "x", None, "boom"] for row in self.running})
        notes = json.dumps({str(row[0]): [1, 0.5, "half", None] for row in self.running})
        logs = json.dumps({str(row[0]): [1, 0, 4, 0, 0, "one\n", None, None] for row in self.running})
        refused = json.dumps({str(row[0]): [1, "no topic"] for row in self.queued})
        return {
            "claim_once": {**due, "lane": 0, "named": False, "arrays": False},
            "claim_once together": {**due, "lane": 0, "named": False, "arrays": True},
            "read_traces": {"ids": jobs},
            "claim_once named": {**due, "lane": 0, "named": True, "arrays": False},
            "lock_planned_timers": {**due, "lane": 1, "kind": 1, "zone_data": "none"},
            "lock_planned_timers zoned": {**due, "lane": 1, "kind": 3, "zone_data": zone_data_version()},
            "keep_slots": {"job_ids": jobs, "instants": [row[1] for row in self.queued]},
            "list_due_plans": {**due, "lane": 1, "kind": 1, "groups": 16},
            "claim_alike": {**due, **self.groups, "kind": 1, "zone_data": "none", "arrays": True},
            "claim_alike zoned": {
                **(due | self.groups),
                "kind": 3,
                "zone_data": zone_data_version(),
                "arrays": False,
            },
            "claim_run_timers retries": {**due, "lane": 2, "kind": 2},
            "read_next_timers": {"shards": list(EVERY_SHARD)},
            **self.cases_of_looks(jobs),
            "list_missing_days": due,
            "advance_timers": {
                "places": [row[0] for row in self.timers],
                "at": [self.started_at] * len(self.timers),
                "fire_at": [self.started_at] * len(self.timers),
                "after_at": [None] * len(self.timers),
                "after_offset": [None] * len(self.timers),
                "runs_left": [None] * len(self.timers),
            },
            "delete_timers": {"places": [row[0] for row in self.timers]},
            "read_outbox": {
                "slices": list(EVERY_SHARD),
                "lanes": [0, 1, 2, 3],
                "limits": [BATCH // 12] * 4,
                "without": [],
            },
            "read_refused": {"slices": list(EVERY_SHARD), "after": 0, "most": BATCH // 4},
            "count_refused": {"slices": list(EVERY_SHARD), "cap": BATCH // 4},
            "refuse_events": {
                "places": [row[0] for row in self.outbox],
                "seqs": [row[1] for row in self.outbox],
                "reasons": json.dumps({str(row[1]): "no such topic" for row in self.outbox}),
            },
            "delete_outbox": {
                "places": [row[0] for row in self.outbox],
                "seqs": [row[1] for row in self.outbox],
            },
            "delete_unlocked_outbox": {
                "places": [row[0] for row in self.outbox],
                "seqs": [row[1] for row in self.outbox],
            },
            "find_outbox_rows": {
                "places": [row[0] for row in self.outbox],
                "seqs": [row[1] for row in self.outbox],
            },
            "measure_relay_lag": {"slices": list(EVERY_SHARD), "cap": BATCH // 4},
            "read_due_heads": {},
            "read_outbox_heads": {},
            "claim_deliveries": {"channel": "webhook", "most": 16, "lease_seconds": 90.0},
            "park_runs": {**queued, "refused": refused, "retry_seconds": 5.0},
            "start_runs": {
                **me,
                **queued,
                "fence": 1,
                "pool": "default",
                "grace_seconds": 60,
                "timeouts": True,
            },
            "finish_plain": {**me, **running, "fence": 1, "expected": BATCH},
            "finish_detailed": {**me, **running, "outcomes": details},
            "find_recorded_outcomes": {**me, **running},
            "save_run_notes": {**me, **running, "given": notes},
            "save_attempt_logs": {**me, **running, "given": logs},
            "list_worker_batches": me,
            "list_worker_runs": {**me, **running},
            "requeue_unfinished_runs": {**me, **running_fences},
            "cancel_unowned_runs": {**me, **running_fences},
            "expire_starts": fenced_span([(*row[:2], 1) for row in self.queued]),
            "requeue_runs": {**queued, "reason": "undeliverable"},
            "find_locked_runs": running,
            "postpone_run_timers": running,
            "lock_lost_runs": {
                **running,
                "workers": [self.worker.worker],
                "started_at": [self.started_at],
            },
            "requeue_lost_runs": {
                **running,
                "neighbours": running["ids"],
                "workers": [self.worker.worker],
                "started_at": [self.started_at],
                "loss_budget": 5,
                "losses_before_wait": 3,
                "live_workers": [self.worker.worker],
            },
            "lock_orphaned_batches": {"limit": 20},
            "mark_jobs_broken": {"ids": jobs[:20], "reasons": ["x"] * 20},
            "complete_jobs": {"ids": jobs[:20]},
            "lock_job_timers": {"ids": jobs},
            "find_unlocked_timers": {"job_id": jobs[0]},
            "pause_timers": {"ids": jobs, "recurring": jobs, "never": NEVER},
            "resume_timers": {"ids": jobs, "never": NEVER},
            "lock_paused_jobs": {"ids": jobs},
            "lock_namespace_jobs": {"ids": jobs},
            "pause_namespace_jobs": {"ids": jobs},
            "resume_namespace_jobs": {"ids": jobs, "missed": "all"},
            "find_jobs_to_pause_with_namespace": {"namespace": "tests", "after": jobs[-1], "limit": BATCH},
            "find_jobs_to_resume": {"namespace": "tests", "after": jobs[-1], "limit": BATCH},
            "count_paused_jobs": {"ids": jobs, "never": NEVER},
            "delete_fire_timers": {"job_id": jobs[0]},
            "delete_retry_timers": {"ids": jobs},
            "lock_unfinished_runs": {"ids": jobs},
            "pause_runs": {**span(self.queued[:5]), "shards": [0]},
            "cancel_runs": {**small, "reason": None},
            "find_job_by_name": {"namespace": "tests", "name": "x"},
            "lock_due_timers_of_job": {"job_id": self.timers[0][1], "never": NEVER},
            **self.cases_of_people(jobs),
            **self.cases_of_room(jobs),
            **self.cases_of_callbacks(me, running),
            **self.cases_of_why(),
        }

    def cases_of_looks(self, jobs: list[UUID]) -> dict[str, dict[str, Any]]:
        """Statements behind what the observer makes of outcomes and looks at."""
        shards, first = list(EVERY_SHARD), UUID(int=0)
        return {
            "read_recurring_kinds": {"ids": jobs},
            "read_job_stats": {"ids": jobs},
            "write_job_stats": self.stats_of(jobs),
            "prune_job_stats": {"after": first, "limit": BATCH},
            "find_late_timers": {"shards": shards, "late_after": 60.0, "limit": BATCH // 12},
            # All runs of this database were made a moment ago.
            "find_late_runs": {"late_after": -60.0, "limit": BATCH, "capacity": BATCH, "ruled": False},
            "delete_late_runs": {},
            "group_late_runs": {"late_after": -60.0, "limit": BATCH},
            "find_late_by_rule": {"after": first, "limit": BATCH},
            "find_long_runs": {
                "factor": 2.0,
                "min_runs": 1,
                "min_seconds": -60.0,
                "batches": 3,
                "limit": BATCH,
            },
            "find_stuck_runs": {"silence": -60.0, "batches": 3, "most": BATCH},
            "find_failing_jobs": {"failing_after": 3, "limit": BATCH},
            "find_dead_causes": {"look_back": 0.0, "limit": BATCH},
            "read_dead_causes": {
                "namespaces": ["tests"] * 2,
                "fingerprints": ["f"] * 2,
                "job_ids": [None, first],
                "most": BATCH,
            },
            "measure_silence": {"shards": shards, "silence": 60.0},
        }

    def stats_of(self, jobs: list[UUID]) -> dict[str, Any]:
        """The statistics of a batch: half of the jobs have some."""
        known = self.db.execute(
            "select ctid::text, job_id from job_stats where job_id = any (%s)", [jobs[: BATCH // 2]]
        ).fetchall()
        batch = [*known, *((None, job) for job in uuid7_batch(BATCH // 2))]
        return {
            "places": [place for place, _ in batch],
            "job_ids": [job for _, job in batch],
            **{name: ["x"] * BATCH for name in ("namespaces", "kinds", "causes", "errors")},
            **{name: [1] * BATCH for name in ("runs", "usual", "failures")},
            **{name: [None] * BATCH for name in ("run_ids", "failed_at", "succeeded_at")},
            "recent": [bytes(30)] * BATCH,
        }

    def cases_of_why(self) -> dict[str, dict[str, Any]]:
        """Statements behind the question why a job has not run."""
        waiting = self.waiting[:20]
        keys = [UUID(int=n + 1) for n in range(20)]
        return {
            "explain_recent_runs": {"job_id": waiting[0][2], "most": 20},
            "explain_timer": {"job_id": waiting[0][2]},
            "explain_runs": span(waiting),
            "explain_runs of any day": {
                **span(waiting),
                "first": NEVER - timedelta(days=9999),
                "last": NEVER,
            },
            # Of each line, its slots and those before the run are counted.
            "explain_gates": {"run_ids": [waiting[0][0]], "keys": keys[:1]},
            "explain_slot_holders": {"keys": keys, "most": 5},
            "find_workflow_run": {"run_id": waiting[0][0]},
            "list_task_states": {
                "workflow_id": waiting[0][0],
                "scheduled_for": waiting[0][1],
                "job_id": waiting[0][2],
                "version": 1,
                **dict.fromkeys(("progress", "generation", "keys", "states")),
                "failed_first": True,
                "error_chars": 300,
                "after_place": -1,
                "after_no": -1,
                "limit": 50,
            },
        }

    def cases_of_callbacks(self, me: dict[str, Any], running: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Statements behind runs whose target reports their end."""
        ids = running["ids"]
        return {
            "open_callbacks": {
                **me,
                "ids": ids,
                "scheduled_for": [row[1] for row in self.running],
                "fences": [1] * len(ids),
                "token_hashes": [bytes(32)] * len(ids),
            },
            "await_callbacks": {**me, **running, "seconds": json.dumps({str(one): [1, 60] for one in ids})},
            "read_callback_runs": {"ids": ids},
            "close_callbacks": {
                "ids": ids,
                "job_ids": [row[2] for row in self.running],
                "fences": json.dumps({str(one): 1 for one in ids}),
            },
            "claim_run_timers deadlines": {
                "shards": list(EVERY_SHARD),
                "lane": 1,
                "kind": 4,
                "limit": BATCH // 4,
            },
        }

    def cases_of_room(self, jobs: list[UUID]) -> dict[str, dict[str, Any]]:
        """Statements behind limits, caps and overlap rules."""
        waiting = span(self.waiting)
        ids, mine = waiting["ids"], [row[2] for row in self.waiting]
        lines = [UUID(int=n + 1) for n in range(40)]
        return {
            "probe_waits": {},
            "list_expired_waits": {"limit": BATCH},
            "list_wait_queues": {"from_key": UUID(int=0), "limit": 100},
            "list_wait_candidates": {"keys": lines[:20], "most": [BATCH // 20] * 20},
            "read_gate_usage": {"keys": lines[:1]},
            "promote_runs": {**waiting, "holders": ids},
            "enqueue_gated_runs": {**waiting, "reason": "limit", "key": UUID(int=0)},
            "skip_waits": {**waiting, "verdict": "start_deadline"},
            "update_run_wait_reasons": {**waiting, "reason": "fairness", "slotted": False},
            "move_waits": {
                "ids": ids,
                "targets": json.dumps({str(id_): [str(lines[0]), "limit", "api", None] for id_ in ids}),
            },
            "reset_job_waits": {"job_id": mine[0], "key": UUID(int=0)},
            "list_paused_runs": {"ids": mine},
            "read_slot_queues": {"ids": jobs},
            "lock_slot_holders": {"ids": [row[0] for row in self.queued[:20]]},
            "find_gated_jobs": {"ids": jobs},
            "release_slots": {"keys": jobs, "run_ids": [row[0] for row in self.queued]},
            "acquire_free_slots": {"keys": jobs, "run_ids": [row[0] for row in self.queued]},
            "find_jobs_to_plan": {"namespace": "tests", "after": jobs[-1], "limit": BATCH},
            "plan_one_time_timers": {"ids": jobs},
        }

    def cases_of_people(self, jobs: list[UUID]) -> dict[str, dict[str, Any]]:
        """Statements behind calendars, zone data and backfills."""
        calendar = {"namespace": "tests", "pair": "holidays"}
        job, at = self.queued[0][2], self.queued[0][1]
        hour = timedelta(hours=1)
        of_backfill = {"job_id": job, "request_id": "x", "first": at - hour, "last": at + hour}
        zoned = [list(column) for column in zip(*self.zoned, strict=True)]
        return {
            "list_calendar_jobs": {**calendar, "limit": 20},
            "lock_calendar_timers": calendar,
            "update_calendar_jobs": {**calendar, "new_pair": "x"},
            "replan_calendar_timers": {"jobs": jobs, "paused": jobs[:20]},
            "move_zoned_timers": {
                "never": NEVER,
                "jobs": zoned[0],
                "was": zoned[1],
                "after_at": zoned[2],
                "at": zoned[1],
                "fire_at": zoned[1],
                "wakes": [False] * len(zoned[0]),
            },
            "lock_backfill_job": {"job_id": job},
            "lock_backfill_timer": {"job_id": job},
            "read_backfill_ledger": {"job_id": job, "first": at - hour, "last": at + hour, "instants": [at]},
            "lock_backfill_runs": of_backfill,
            "count_backfill_unfinished": {**of_backfill, "cap": BATCH},
            **self.cases_of_verify(jobs),
            **self.cases_of_orders(jobs),
        }

    def cases_of_verify(self, jobs: list[UUID]) -> dict[str, dict[str, Any]]:
        """Statements that a check of the ledger executes in each of its steps."""
        queued = span(self.queued)
        now = self.world.now()
        step = {"ids": queued["ids"], "since": queued["first"], "until": now, "settled": now}
        compared = {"digests": True, "error_chars": 100}
        passed = {"pools": ["default"], "lanes": [1], "passed_until": [now]}
        day = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return {
            "read_attempts_of_runs": step | compared,
            "read_dead_letters_of_runs": step | compared,
            "read_workers_of_runs": {"ids": [1, 2]},
            "read_jobs_of_runs": {"ids": jobs},
            "read_versions_of_runs": {"jobs": jobs, "versions": [1] * len(jobs)},
            "find_slot_holders": step,
            "count_strays": {"settled": now, "soon": now, "cap": BATCH},
            "read_schedules": {"ids": jobs, "since": queued["first"]},
            "read_instants": {"ids": jobs, "since": queued["first"], "until": now},
            "find_missing_runs": {"ids": queued["ids"], "day": day, "day_end": day + timedelta(days=1)},
            "find_repeated_runs": step,
            "find_abandoned_runs": step,
            "find_lost_messages": step | passed,
            "read_workflow_runs": step,
            "read_graphs": {"jobs": jobs, "versions": [1] * len(jobs)},
            "read_workflow_timers": {"jobs": jobs, "ids": queued["ids"]},
        }

    def cases_of_orders(self, jobs: list[UUID]) -> dict[str, dict[str, Any]]:
        """Statements behind orders about runs: redrives, discards, cancels, and pauses of failing jobs."""
        queued = span(self.queued)
        of_jobs = {"job_ids": jobs, "ids": queued["ids"]}
        return {
            "list_jobs_of_runs": queued,
            "lock_run_timers": of_jobs,
            "delete_cancelled_run_timers": of_jobs,
            "lock_runs_in_states": {**queued, "states": ["queued"]},
            "read_dead_letter_jobs": {"ids": jobs},
            "share_lock_jobs": {"ids": jobs},
            "share_lock_free_jobs": {"ids": jobs},
            "list_runs_of_jobs": {**queued, "job_ids": jobs},
            "lock_dead_runs": queued,
            "redrive_runs": {**queued, "waits": "{}", "key": None, "holders": []},
            "discard_runs": {**queued, "reason": None},
            "find_jobs_to_pause": {"ids": jobs},
        }


OF_EVERY_CHECK = {"count_strays", "find_slot_holders"}
"""Statements that only `noonmark verify` executes, and that rely on the settings of its steps."""

UPDATES_OF_RUNS = (
    "await_callbacks",
    "enqueue_gated_runs",
    "promote_runs",
    "update_run_wait_reasons",
    "skip_waits",
    "expire_starts",
    "finish_detailed",
    "finish_plain",
    "requeue_unfinished_runs",
    "cancel_unowned_runs",
    "cancel_runs",
    "pause_runs",
    "requeue_lost_runs",
    "park_runs",
    "requeue_runs",
    "redrive_runs",
    "discard_runs",
    "start_runs",
)


def span(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    at = [row[1] for row in rows]
    return {"ids": [row[0] for row in rows], "first": min(at), "last": max(at)}


@pytest.fixture(scope="module", params=["analysed while empty", "never analysed", "analysed when filled"])
def filled(request: pytest.FixtureRequest, postgres_server, template_database: str) -> Iterator[Filled]:
    name = f"plans_{uuid7_batch(1)[0].hex}"
    postgres_server.copy(template_database, name)
    with open_world(postgres_server.url_of(name)) as world:
        tables = [*world.column("select relname from pg_class where relname ~ '^runs_[0-9]+$'"), *WATCHED]
        for table in tables:
            if table != "runs":
                world.db.execute(f"alter table {table} set (autovacuum_enabled = off)")
        if request.param == "analysed while empty":
            world.db.execute("analyze")
        database = Filled(world)
        database.fill()
        if request.param == "analysed when filled":
            world.db.execute("vacuum analyze")
        database.choose()
        yield database
    postgres_server.drop(name)


def statement_of(case: str) -> str:
    """Name of the statement of a case: some have several."""
    return case.partition(" ")[0]


def explain(
    db: psycopg.Connection, case: str, params: Mapping[str, Any], *, in_a_check: bool = False
) -> Plan:
    """Execute a statement in a transaction that is rolled back; return its plan with what it did.

    `in_a_check`: with the settings of a step of `noonmark verify`. A statement that is planned once is explained with
    the plan that a session keeps of it, which knows no values.
    """
    name = statement_of(case)
    text = statement(name)
    with db.transaction() as transaction:
        if in_a_check:
            db.execute(statement("begin_verify_step"), {"timeout_ms": 30_000})
        if name in PLANNED_ONCE:
            db.execute("set local plan_cache_mode = force_generic_plan; set local enable_seqscan = off")
            db.execute("deallocate all")
            db.execute(f"prepare planned as {numbered(name)}")
            text = planned_once(name).replace(f"select * from {function_of(name)}", "execute planned")
            # Whether to look for conflicts at once is a parameter of the function alone: the plan is the same.
            text = text.removesuffix(", true)") + ")" if name in RARE_CONFLICTS else text
        # No parameter can be bound to EXECUTE.
        cursor = psycopg.ClientCursor(db) if name in PLANNED_ONCE else db.cursor()
        row = cursor.execute(f"explain (analyze, timing off, format json) {text}", params).fetchone()
        assert row is not None
        raise_rollback = psycopg.Rollback(transaction)
        plan: Plan = row[0][0]["Plan"]
        raise raise_rollback
    return plan


def nodes(plan: Plan) -> Iterator[Plan]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def table_of(node: Plan) -> str:
    relation: str = node.get("Relation Name", "")
    return "runs" if relation.startswith("runs_") else relation


def days_in(plan: Plan) -> set[str]:
    return {
        node["Relation Name"] for node in nodes(plan) if node.get("Relation Name", "").startswith("runs_")
    }


def visited(node: Plan) -> int:
    """Rows that a node looked at: those it gave and those it threw away."""
    thrown = sum(
        node.get(key, 0)
        for key in ("Rows Removed by Filter", "Rows Removed by Join Filter", "Rows Removed by Index Recheck")
    )
    return round((node["Actual Rows"] + thrown) * node["Actual Loops"])


def test_hot_statements_visit_only_the_rows_of_their_batch(filled):
    wrong = []
    for name, params in filled.cases().items():
        in_a_check = name in OF_EVERY_CHECK
        for node in nodes(explain(filled.db, name, params, in_a_check=in_a_check)):
            if table_of(node) in _MAY_READ_ALL.get(name, ()):
                continue
            scans = node["Node Type"].endswith("Scan") and table_of(node) in WATCHED
            if node["Node Type"] == "Seq Scan" and table_of(node) in WATCHED and visited(node):
                wrong.append(f"{name} reads {node['Relation Name']} from end to end")
            elif (scans or "Join" in node["Node Type"] or node["Node Type"] == "Nested Loop") and (
                visited(node) > 3 * BATCH
            ):
                what = node.get("Relation Name", node["Node Type"])
                wrong.append(f"{name} visits {visited(node)} rows of {what} for a batch of {BATCH}")

    assert not wrong, "\n".join(wrong)


def test_writes_to_the_ledger_open_only_the_day_that_they_are_about(filled):
    cases = filled.cases()
    days = {name: days_in(explain(filled.db, name, cases[name])) for name in UPDATES_OF_RUNS}
    today = f"runs_{filled.world.now():%Y%m%d}"

    assert days == {key: {today} for key in UPDATES_OF_RUNS}


def test_hot_statements_find_rows_of_two_days_without_opening_others(filled):
    yesterday = filled.world.now() - timedelta(days=1)
    cases = filled.cases()["finish_plain"] | {"first": yesterday}

    plan = explain(filled.db, "finish_plain", cases)

    assert len(days_in(plan)) == 2


def test_the_count_of_unfinished_runs_does_not_read_the_ledger(filled):
    plan = explain(filled.db, "count_unfinished", {})

    scans = [node for node in nodes(plan) if table_of(node) == "runs"]
    # One look per batch and running run; the other days' partitions are never executed.
    assert not [node for node in scans if node["Node Type"] == "Seq Scan" and node["Actual Loops"]]
    assert (
        sum(visited(node) for node in scans if "Bitmap Index" not in node["Node Type"]) <= ROWS // 2 + BATCH
    )


def test_every_statement_on_a_large_table_has_a_case_or_a_reason_for_none(filled):
    cases = {*map(statement_of, filled.cases()), "count_unfinished", *OF_WORKFLOWS}
    large = {name for name in statements.names() if re.search(rf"\b({'|'.join(WATCHED)})\b", statement(name))}

    assert large - cases - set(_RARE) == set()
    assert not cases & set(_RARE)


def test_starts_and_outcomes_leave_the_indexes_alone(filled):
    """HOT updates: neither state, owner nor times are indexed, and pages keep room for the next version."""
    world = filled.world
    cases = filled.cases()
    day = f"runs_{world.now():%Y%m%d}"
    before = updates(world, day)
    world.db.execute(statement("start_runs"), cases["start_runs"])
    started = world.value("select started_at from runs where id = %s", filled.queued[0][0])
    params = {**filled.worker._asdict(), **span(filled.queued), "fence": 1, "expected": BATCH}
    assert world.db.execute(statement("finish_plain"), params).fetchone()[0] == BATCH

    total, hot = (after - earlier for after, earlier in zip(updates(world, day), before, strict=True))

    assert started is not None
    assert total == 2 * BATCH
    assert hot >= 0.9 * total


def test_statistics_of_jobs_are_updated_where_they_are(filled):
    """HOT updates; no row is locked, because none of them is inserted first."""
    plan = explain(filled.db, "write_job_stats", filled.cases()["write_job_stats"])
    assert (plan["Tuples Inserted"], plan["Conflicting Tuples"]) == (BATCH // 2, 0)
    world = filled.world
    jobs = [row[2] for row in filled.queued]
    ids = {"ids": jobs}
    world.db.execute("vacuum full job_stats")
    before = updates(world, "job_stats")
    written = dict.fromkeys(jobs, 0)
    for _ in range(5):
        with world.db.transaction():
            stored = statistics.stats_of(world.db, jobs)
            for job in jobs:
                one = stored.by_job[job.int]
                one.runs += 1
                one.recent[stored.hour[0]] = one.recent.get(stored.hour[0], 0) + 1
                written[job] = one.runs
            statistics.write_stats(world.db, list(stored.by_job.values()), stored.places)

    total, hot = (after - earlier for after, earlier in zip(updates(world, "job_stats"), before, strict=True))

    assert (
        dict(world.db.execute("select job_id, runs from job_stats where job_id = any (%(ids)s)", ids))
        == written
    )
    assert total == 5 * BATCH
    assert hot >= 0.9 * total


def updates(world: World, table: str) -> tuple[int, int]:
    world.db.execute("select pg_stat_force_next_flush()")
    (row,) = world.rows("select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where relname = %s", table)
    return row["n_tup_upd"], row["n_tup_hot_upd"]
