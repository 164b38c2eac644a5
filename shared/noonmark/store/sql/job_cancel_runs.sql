-- Ends the locked runs of a cancelled job: those without a worker at once, under a higher fence; a running
-- one is asked to stop and keeps its fence, for an outcome committed first wins.
with ended as (
    update runs
    set state = case state when 'running' then 'cancelling' else 'cancelled' end,
        reason = null,
        finished_at = case state when 'running' then null else noonmark_now() end,
        fence = fence + (state <> 'running')::int
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
      and state in ('waiting', 'queued', 'running', 'retrying')
    returning id, scheduled_for, job_id, job_version, origin, namespace, lane, pool, shard, attempt, fence, state,
              reason, started_at, finished_at, error, holds_slot
), unsent as (
    delete from outbox where slice = %(shard)s and lane < 3 and run_id = any (%(ids)b::uuid[])
), waiting as (
    delete from waits where run_id = any (%(ids)b::uuid[])
)
select * from ended
