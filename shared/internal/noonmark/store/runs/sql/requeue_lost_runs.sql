-- Ends the attempt of runs whose worker is gone: they are requeued under a higher fence until the loss budget is used up,
-- then they are dead; a run that was asked to stop is cancelled. The retry budget does not change. A run with at-most-once
-- delivery ends as `unknown`, because its handler may have begun; that attempt counts, one that is repeated does not.
-- The delivery is that of the version the run was planned with. A deleted job promises nothing.
-- A run of these batches that the same worker has started again since belongs to its newer batch.
update runs
set (state, reason, error, finished_at, queued_at, losses, attempt, fence, owner, epoch) = (
    select case when runs.state = 'cancelling' then 'cancelled' when once then 'unknown'
                when runs.losses >= %(loss_budget)s then 'dead' else 'queued' end,
           case when runs.state = 'cancelling' then runs.reason
                when once or runs.losses >= %(loss_budget)s then 'lost' end,
           case when runs.state = 'cancelling' then null
                when once then 'the worker was lost while it ran this; how far the run got is unknown'
                when runs.losses >= %(loss_budget)s
                then 'the run lost its worker ' || runs.losses + 1 || ' times' end,
           case when runs.state = 'cancelling' or once or runs.losses >= %(loss_budget)s then noonmark_now() end,
           noonmark_now(), runs.losses + 1,
           greatest(runs.attempt - (not (once and runs.state = 'running'))::int, 0), runs.fence + 1, null::bigint, null::int
    from (
        select coalesce(
            (select work from jobs where jobs.id = runs.job_id and jobs.version = runs.job_version),
            (select work from job_versions as old where old.job_id = runs.job_id and old.version = runs.job_version)
        ) ->> 'delivery' is not distinct from 'at_most_once'
    ) as promised (once)
)
where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
  and owner = any (%(workers)b::bigint[]) and started_at = any (%(started_at)b::timestamptz[])
  and state in ('running', 'cancelling')
returning id, scheduled_for, job_id, job_version, origin, namespace, lane, pool, shard, attempt, fence, state, reason,
          started_at, finished_at, error, holds_slot
