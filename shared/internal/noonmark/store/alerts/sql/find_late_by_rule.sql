-- Jobs with their own `late_after_seconds`, page by page: an instant not planned in time, or a run that has not started.
with page as materialized (
    select job_id, make_interval(secs => late_after_seconds) as patience from late_rules
    where job_id > %(after)s order by job_id limit %(limit)s
)
select page.job_id, job.namespace, job.pool, coalesce(due.fire_at, run.scheduled_for) as since, job.unique_name, job.name,
       run.run_id
from page
left join lateral (select namespace, pool, unique_name, name from jobs where id = page.job_id offset 0) as job on true
left join lateral (
    select fire_at from timers
    where job_id = page.job_id and kind in (0, 1, 3)
      and fire_at >= '0001-01-02 00:00+00' and fire_at < noonmark_now() - page.patience
    order by fire_at limit 1
) as due on true
left join lateral (
    select run_id, scheduled_for from late_runs
    where job_id = page.job_id and scheduled_for < noonmark_now() - page.patience
    order by scheduled_for limit 1
) as run on true
