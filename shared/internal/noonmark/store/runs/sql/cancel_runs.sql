-- Cancels locked runs. A run without a worker ends at once, under a higher fence. A running one is asked to stop and keeps
-- its fence: an outcome that commits first wins. A run that waits for a callback has no worker: its owner is 0. A row of the
-- outbox with several runs stays: the start of this one is refused. An open workflow run (owner -1) is asked to stop, too: a
-- timer that is due now has a trigger stop its tasks.
with ended as (
    update runs
    set state = case when state = 'running' and owner <> 0 then 'cancelling' else 'cancelled' end,
        reason = %(reason)s::text,
        finished_at = case when state = 'running' and owner <> 0 then null else noonmark_now() end,
        fence = fence + (state <> 'running' or owner = 0)::int
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
      and state in ('waiting', 'queued', 'running', 'retrying')
    returning id, scheduled_for, job_id, job_version, origin, namespace, lane, pool, shard, attempt, fence, state,
              reason, started_at, finished_at, error, holds_slot, owner
), deleted_messages as (
    delete from outbox where slice = any (%(shards)b::smallint[]) and lane < 3 and run_id = any (%(ids)b::uuid[])
), deleted_waits as (
    delete from waits where run_id = any (array(select unnest(%(ids)b::uuid[])))
), deleted_callbacks as (
    delete from callbacks where run_id in (select id from ended where state = 'cancelled')
), told as (
    insert into timers (fire_at, scheduled_for, job_id, run_id, job_version, shard, lane, kind, namespace, pool)
    select noonmark_now(), scheduled_for, job_id, id, job_version,
           coalesce((select workflows.shard from workflows where workflows.run_id = ended.id), shard), lane, 5, namespace, pool
    from ended where state = 'cancelling' and owner = -1
)
select id, scheduled_for, job_id, job_version, origin, namespace, lane, pool, shard, attempt, fence, state, reason,
       started_at, finished_at, error, holds_slot
from ended
