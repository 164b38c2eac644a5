-- Runs that have taken much longer than is usual for their job, among the oldest start batches, callbacks and open workflow runs.
-- What is usual for a workflow job says nothing about the runs of its tasks.
with batch as (
    (select run_ids, first_scheduled_for as first_at, last_scheduled_for as last_at from start_batches
     where started_at < noonmark_now() - make_interval(secs => %(min_seconds)s)
     order by id limit %(batches)s)
    union all
    (select array[run_id], scheduled_for, scheduled_for from callbacks
     where deadline_at is not null and opened_at < noonmark_now() - make_interval(secs => %(min_seconds)s)
     order by run_id limit %(batches)s)
    union all
    (select array[run_id], scheduled_for, scheduled_for from workflows
     where opened_at < noonmark_now() - make_interval(secs => %(min_seconds)s)
     order by run_id limit %(batches)s)
)
select run.job_id, run.namespace, run.id, run.elapsed, stats.usual_seconds, stats.runs, job.name
from batch
cross join lateral (
    select id, job_id, namespace, extract(epoch from noonmark_now() - started_at)::float8 as elapsed from runs
    where id = any (batch.run_ids) and scheduled_for between batch.first_at and batch.last_at
      and state in ('running', 'cancelling') and origin <> 'task' offset 0
) as run
cross join lateral (
    select usual_seconds, runs from job_stats where job_id = run.job_id and job_stats.runs >= %(min_runs)s offset 0
) as stats
left join lateral (select name from jobs where id = run.job_id offset 0) as job on true
where run.elapsed > %(factor)s * stats.usual_seconds and run.elapsed >= %(min_seconds)s
order by run.elapsed desc limit %(limit)s
