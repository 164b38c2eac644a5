-- Active jobs whose last attempts all failed with the same cause.
select stats.job_id, stats.namespace, stats.kind, stats.failures, stats.failure_cause, stats.last_error, stats.last_run_id,
       stats.last_failure_at, job.name
from (
    select job_id, namespace, kind, failures, failure_cause, last_error, last_run_id, last_failure_at from job_stats
    where failures >= 2 and failures >= %(failing_after)s order by failures desc limit %(limit)s
) as stats
cross join lateral (select name from jobs where id = stats.job_id and state = 'active' offset 0) as job
