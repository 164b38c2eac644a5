"""What must hold of a database at every moment at which nobody is at work in it, whatever was done before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from tests.integration.store.world import World

TERMINAL = {"succeeded", "skipped", "cancelled", "unknown", "discarded"}


def adds_up(world: World, most: Mapping[str, int]) -> None:
    """What hangs on a run is there if and only if the run is in a state that has it; limits hold at `most` so many."""
    wrong = {
        name: world.rows(query)
        for name, query in {
            "waits without a waiting run": """
                select waits.*, runs.state from waits left join runs on id = run_id
                where runs.state is distinct from 'waiting' or runs.reason <> waits.reason""",
            "waiting runs without a wait": """
                select * from runs where state = 'waiting' and not exists (select from waits where run_id = id)""",
            "paused runs in a line": "select * from waits where (reason in ('paused', 'undeliverable')) <> (key is null)",
            "slots without a holder": """
                select slots.*, state, holds_slot from slots left join runs on id = run_id
                where runs.id is null or not holds_slot or finished_at is not null""",
            "limit slots without a holder": """
                select limit_slots.*, state, holds_slot from limit_slots left join runs on id = run_id
                where runs.id is null or not holds_slot or finished_at is not null""",
            "limits overdrawn": f"""
                select key, count(*) from limit_slots group by key having count(*) > {max(most.values())}""",
            "one limit twice": "select run_id, key from limit_slots group by 1, 2 having count(*) > 1",
            "retrying runs without their one timer": """
                select runs.*, (select count(*) from timers where run_id = runs.id and kind = 2) as timers from runs
                where (state = 'retrying' or (state = 'waiting' and reason = 'undeliverable'))
                  and (select count(*) from timers where run_id = runs.id and kind = 2) <> 1""",
            "messages of an earlier fence": """
                select outbox.seq, outbox.fence, runs.* from outbox left join runs on id = run_id
                where run_id is not null and (runs.id is null or state <> 'queued' or runs.fence <> outbox.fence)""",
            "a run queued twice": """
                select run_id from outbox where run_id is not null group by run_id having count(*) > 1""",
            "dead runs without a letter": """
                select * from runs where state = 'dead' and not exists (select from dead_letters where run_id = id)""",
            "letters of runs that are not dead": """
                select * from dead_letters left join runs on id = run_id where state is distinct from 'dead'""",
            "runs of a worker that no batch leads to": """
                select * from runs where state in ('running', 'cancelling') and owner <> 0 and not exists (
                    select from start_batches
                    where worker = owner and runs.id = any (run_ids) and start_batches.started_at = runs.started_at)""",
            "runs that await a report and have no deadline": """
                select * from runs where state = 'running' and owner = 0
                and not exists (select from timers where kind = 4 and run_id = runs.id)""",
            "paused jobs whose runs can start": """
                select runs.* from runs join jobs on jobs.id = job_id
                where jobs.state = 'paused' and runs.state in ('queued', 'retrying')
                  and not exists (select from timers where run_id = runs.id)""",
            "jobs with two runs in their slot": """
                select job_id, array_agg((runs.id, runs.state, runs.holds_slot, fence)::text) from runs join jobs on jobs.id = job_id
                where jobs.name = any ('{skips,lines-up,newest,newest-free,once}')
                  and runs.state in ('queued', 'running', 'cancelling', 'retrying') group by 1 having count(*) > 1""",
        }.items()
    }
    said = [f"{name}: {rows[:3]}" for name, rows in wrong.items() if rows]
    assert not said, "\n".join(said)


def verdicts_add_up(world: World) -> None:
    """Every run that has ended was announced once as what it is, and as nothing else before."""
    told: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for one in world.told():
        told[one["run_id"]].append((one["fence"], one["state"]))
    wrong = {}
    for run in world.rows("select id, state, fence, reason from runs"):
        ends = [state for _, state in told[str(run["id"])] if state in TERMINAL]
        deaths = [fence for fence, state in told[str(run["id"])] if state == "dead"]
        expected = [run["state"]] if run["state"] in TERMINAL else []
        if ends != expected or len(set(deaths)) != len(deaths):
            wrong[run["id"]] = run, told[str(run["id"])]
    assert wrong == {}
