"""A database with many open workflow runs, and the statements about workflows with values of it."""

from __future__ import annotations

import json
from typing import Any

from tests.integration.store.world import EVERY_SHARD, World

from noonmark.store.documents.columns import NEVER

FLOWS = 4_000
TASKS = 4
BATCH = 400

CASES = frozenset(
    {
        *("take_facts", "read_next_facts", "delete_facts", "postpone_facts", "insert_facts"),
        *("open_workflows", "lock_queued_workflows", "update_workflows", "close_workflows"),
        *("hold_workflows", "lock_workflows", "release_facts", "delete_lost_workflows"),
        *("list_task_runs", "read_task_results", "report_earlier_runs", "read_task_work"),
        *("read_workflow_tasks", "show_workflow_tasks"),
    }
)
"""Statements that `WorkflowBacklog.cases` has values for."""


class WorkflowBacklog:
    """Workflow jobs with a run each that is open, of which one task has just ended, and with one that is queued."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.db = world.db

    def fill(self) -> None:
        self.db.execute(
            """insert into jobs (id, namespace, kind, lane, pool, shard, work, unique_name, state, version, created_at,
                                 updated_at)
               select noonmark_uuid7(), 'tests', 'workflow', 1, '$workflow', n %% 4, '{"deadline_seconds": 60}', false,
                      'active', 1, now(), now()
               from generate_series(1, %s) n""",
            [FLOWS],
        )
        self.db.execute(
            """insert into workflow_tasks (job_id, version, task_no, key, kind, handler, lane, pool, work, graph, document)
               select id, 1, no, 't' || no, 'python', 'h', 1, 'default', '{}', '{}', '{}'
               from jobs, generate_series(0, %s) no""",
            [TASKS - 1],
        )
        self.db.execute(
            """insert into runs (id, scheduled_for, queued_at, job_id, job_version, fence, lane, shard, state, origin,
                                 request_id, namespace, pool, owner, epoch, started_at)
               select noonmark_uuid7(), now(), now(), id, 1, 1, 1, shard, kept, 'manual', kept, 'tests', '$workflow',
                      case kept when 'running' then -1 end, case kept when 'running' then 0 end,
                      case kept when 'running' then now() end
               from jobs, unnest('{running,queued}'::text[]) as kept"""
        )
        self.db.execute(
            """insert into workflows (run_id, scheduled_for, job_id, job_version, shard, generation, progress, choices,
                                      opened_at)
               select id, scheduled_for, job_id, 1, shard, 1, '\\x00000000', '', now() from runs where state = 'running'"""
        )
        self.fill_tasks()

    def fill_tasks(self) -> None:
        """Runs of all tasks that have ended; the timers of one are due, of one are parked, one is the deadline."""
        self.db.execute(
            """insert into runs (id, scheduled_for, queued_at, job_id, job_version, fence, lane, shard, state, origin,
                                 request_id, namespace, pool, owner, epoch, started_at, finished_at, due_at, result)
               select noonmark_uuid7(), scheduled_for, now(), job_id, 1, 1, 1, shard, 'succeeded', 'task',
                      run_id || '/' || no || '/0/1', 'tests', 'default', 1, 1, now(), now(), now(), '{"n": 1}'
               from workflows, generate_series(0, %s) no""",
            [TASKS - 1],
        )
        self.db.execute(
            """insert into timers (fire_at, scheduled_for, job_id, run_id, job_version, shard, lane, kind, namespace, pool)
               select case when split_part(request_id, '/', 2) = '0' then now() else %s end, scheduled_for, job_id, id, 1,
                      shard, 1, 5, namespace, pool
               from runs where origin = 'task' and split_part(request_id, '/', 2) in ('0', '1')""",
            [NEVER],
        )
        self.db.execute(
            """insert into timers (fire_at, scheduled_for, job_id, run_id, job_version, shard, lane, kind, namespace, pool)
               select now() + interval '1 h', scheduled_for, job_id, run_id, 1, shard, 1, 5, 'tests', '$workflow'
               from workflows"""
        )

    def cases(self) -> dict[str, dict[str, Any]]:
        """Values of the parameters of each statement: of a batch of runs of tasks, or of the workflows of these."""

        def few(query: str, most: int = BATCH) -> list[tuple[Any, ...]]:
            return self.db.execute(f"{query} limit {most}").fetchall()

        flows = few(
            "select run_id, scheduled_for, job_id, shard from workflows order by run_id", BATCH // TASKS
        )
        queued = few("select id, scheduled_for from runs where state = 'queued' order by id", BATCH // TASKS)
        tasks = few("select id, scheduled_for from runs where origin = 'task' order by id")
        places = {"places": [row[0] for row in few("select ctid::text from timers where kind = 5")]}
        ids, at, jobs, shards = (list(column) for column in zip(*flows, strict=True))
        instances = {"ids": ids, "scheduled_for": at, "job_ids": jobs}
        keyed = {
            "job_ids": [job for job in jobs for _ in range(TASKS)],
            "scheduled_for": [one for one in at for _ in range(TASKS)],
            "keys": [f"{run}/{no}/0/1" for run in ids for no in range(TASKS)],
        }
        states = {
            "progress": [bytes(TASKS)] * len(ids),
            "choices": [b""] * len(ids),
        }
        opened = {"generations": [1] * len(ids), "shards": shards, **states}
        verdicts = json.dumps({str(run): ["succeeded", None, None, None] for run in ids})
        versions = {"job_ids": jobs, "versions": [1] * len(jobs)}
        return {
            "take_facts": {"shards": list(EVERY_SHARD), "lane": 1, "limit": BATCH // len(EVERY_SHARD)},
            "read_next_facts": {"shards": list(EVERY_SHARD)},
            "delete_facts": places,
            "postpone_facts": {**places, "fire_at": None, "seconds": 60.0},
            "insert_facts": _span(tasks),
            "open_workflows": {**_span(queued), **opened},
            "lock_queued_workflows": _span(queued),
            "update_workflows": {"ids": ids, **states, "stopping": [None] * len(ids)},
            "close_workflows": {**_span(flows), "verdicts": verdicts},
            # Of few at a time: on statistics of an empty table, many would be looked for from end to end.
            "hold_workflows": {"ids": ids[:1], "held": True},
            "lock_workflows": {"ids": ids[:1]},
            "release_facts": {**_span(flows[:1]), "job_ids": jobs[:1], "never": NEVER},
            "release_facts many": {**_span(flows), "job_ids": jobs, "never": NEVER},
            "delete_lost_workflows": {"ids": ids[:1]},
            "list_task_runs": instances,
            "read_task_results": keyed,
            "report_earlier_runs": keyed,
            "read_task_work": {
                "job_ids": keyed["job_ids"],
                "versions": [1] * len(keyed["keys"]),
                "task_nos": list(range(TASKS)) * len(ids),
            },
            "read_workflow_tasks": versions,
            "show_workflow_tasks": {"job_id": jobs[0], "versions": [1], "most": 20_000, "documents": False},
        }


def _span(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    at = [row[1] for row in rows]
    return {"ids": [row[0] for row in rows], "first": min(at), "last": max(at)}
