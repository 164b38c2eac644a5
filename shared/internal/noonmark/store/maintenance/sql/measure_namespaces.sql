-- Counts waiting runs, running runs and dead letters by namespace: for the largest namespaces, and for the rest together.
-- A row of waits without a namespace belongs to a job that does not need it there: it is read from the job.
with counted as (
    select coalesce(waits.namespace, job.namespace) as namespace, 'waiting' as state, count(*) as runs
    from waits
    left join lateral (select namespace from jobs where jobs.id = waits.job_id and waits.namespace is null offset 0) as job
        on true
    group by 1
    union all
    select live.namespace, 'running', sum(live.runs)
    from start_batches as batch
    cross join lateral (
        select namespace, count(*) as runs from runs
        where id = any (batch.run_ids)
          and scheduled_for between batch.first_scheduled_for and batch.last_scheduled_for
          and owner = batch.worker and started_at = batch.started_at and state in ('running', 'cancelling')
        group by namespace
    ) as live
    group by live.namespace
    union all
    select namespace, 'dead', count(*)
    from (select namespace from dead_letters limit %(cap)s) as head
    group by namespace
), ranked as (
    select namespace, rank() over (order by sum(runs) desc, namespace) as place
    from counted where namespace is not null group by namespace
)
select case when ranked.place <= %(most)s then counted.namespace else '_other' end as shown, state, sum(runs)::bigint as runs
from counted left join ranked using (namespace)
group by shown, state
