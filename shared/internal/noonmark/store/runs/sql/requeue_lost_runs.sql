-- Ends the attempt of runs whose worker is gone. The retry budget does not change. A run that was asked to stop is cancelled.
-- A run with at-most-once delivery ends as `unknown`, because its handler may have begun; that attempt counts, one that is
-- repeated does not. The delivery is that of the version the run was planned with, or of its task. A deleted job promises
-- nothing, nor does one that Postgres cannot read (half a surrogate pair, NUL): its next start is rejected.
-- All others are tried again: at once under a higher fence, or, if they have lost several workers, after a wait (`retrying`),
-- so that runs which do not belong together part. A run whose loss budget is used up is dead only if it can be the cause: its
-- worker held nothing else, or it is past its timeout on a worker that lives. Others never die for a neighbour.
-- A run of these batches that the same worker has started again since belongs to its newer batch. All runs are locked already
-- (`lock_lost_runs`); neighbours are also those that could not be.
update runs
set (state, reason, error, finished_at, queued_at, losses, attempt, fence, owner, epoch) = (
    select case when runs.state = 'cancelling' then 'cancelled' when once then 'unknown' when guilty then 'dead'
                when waits then 'retrying' else 'queued' end,
           case when runs.state = 'cancelling' then runs.reason when once or guilty then 'lost' end,
           case when runs.state = 'cancelling' then null
                when once then 'the worker was lost while it ran this; how far the run got is unknown'
                when guilty then 'the run lost its worker ' || runs.losses + 1 || ' times'
                when waits then 'the worker was lost' end,
           case when runs.state = 'cancelling' or once or guilty then noonmark_now() end,
           case when waits and not (once or guilty or runs.state = 'cancelling') then runs.queued_at else noonmark_now() end,
           runs.losses + 1,
           greatest(runs.attempt - (not (once and runs.state = 'running'))::int, 0),
           runs.fence + (not waits or once or guilty or runs.state = 'cancelling')::int,
           null::bigint, null::int
    from (
        select (
            select noonmark_readable(work) ->> 'delivery'
            from (select case when runs.origin = 'task' then
                (select work from workflow_tasks as task
                 where task.job_id = runs.job_id and task.version = runs.job_version
                   and task.task_no = split_part(runs.request_id, '/', 2)::int)
            else coalesce(
                (select work from jobs where jobs.id = runs.job_id and jobs.version = runs.job_version),
                (select work from job_versions as old where old.job_id = runs.job_id and old.version = runs.job_version)
            ) end as work) as planned
        ) is not distinct from 'at_most_once',
        runs.losses >= %(loss_budget)s and (
            runs.owner = any (%(live_workers)b::bigint[])
            or not exists (
                select from runs as neighbour
                where neighbour.id = any (%(neighbours)b::uuid[]) and neighbour.scheduled_for between %(first)s and %(last)s
                  and neighbour.id <> runs.id and neighbour.owner = runs.owner
                  and neighbour.state in ('running', 'cancelling')
            )
        ),
        runs.losses + 1 >= %(losses_before_wait)s
    ) as judged (once, guilty, waits)
)
where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
  and owner = any (%(workers)b::bigint[]) and started_at = any (%(started_at)b::timestamptz[])
  and state in ('running', 'cancelling')
returning id, scheduled_for, job_id, job_version, origin, namespace, lane, pool, shard, attempt, fence, state, reason,
          started_at, finished_at, error, holds_slot
