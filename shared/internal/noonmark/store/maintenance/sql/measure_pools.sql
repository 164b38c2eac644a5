-- Counts workers of each registered pool by state, their slots, and the runs that they own. Rows of an earlier release have
-- no number of slots: they count with the runs that they own.
select pools.name as pool,
       count(*) filter (where worker.state = 'live') as live,
       count(*) filter (where worker.state = 'silent') as silent,
       count(*) filter (where worker.state = 'draining') as draining,
       coalesce(sum(least(worker.busy, worker.capacity)) filter (where worker.state = 'live'), 0)::bigint as busy,
       coalesce(sum(greatest(worker.capacity - worker.busy, 0)) filter (where worker.state = 'live'), 0)::bigint as free
from pools
left join lateral (
    select case when beat_at < noonmark_now() - make_interval(secs => lease_seconds / 2) then 'silent'
                when draining_at is not null then 'draining' else 'live' end as state,
           coalesce(slots, owned.runs) as capacity, owned.runs as busy
    from workers
    cross join lateral (
        select coalesce(sum(live.runs), 0) as runs
        from start_batches as batch
        cross join lateral (
            select count(*) as runs from runs
            where id = any (batch.run_ids)
              and scheduled_for between batch.first_scheduled_for and batch.last_scheduled_for
              and owner = batch.worker and started_at = batch.started_at and state in ('running', 'cancelling')
        ) as live
        where batch.worker = workers.id
    ) as owned
    where workers.pool = pools.name and left_at is null and lapsed_at is null
) as worker on true
group by pools.name
