-- Late runs grouped into alerts: one for each recurring job, one for the one-time jobs of each namespace. Jobs with their
-- own rule are left out. If a rule was removed, its runs count again only once they are late by the general limit.
select late.job_id, late.namespace, late.pools, late.runs, late.since, late.run_id, job.name
from (
    select case when recurring then job_id end as job_id, namespace, array_agg(distinct pool order by pool) as pools,
           count(*) as runs, min(scheduled_for) as since, (array_agg(run_id order by scheduled_for, run_id))[1] as run_id
    from late_runs where not exists (select from late_rules where late_rules.job_id = late_runs.job_id)
      and run_id < noonmark_first_id(noonmark_now() - make_interval(secs => %(late_after)s))
    group by 1, 2 order by since limit %(limit)s
) as late
left join lateral (select name from jobs where id = late.job_id offset 0) as job on true
