-- The current statistics of jobs, and where they are: nulls for those without history. The time says what is of the last hour.
-- The lock of their partitions keeps other observers away.
select noonmark_now(), place::text, recent, wanted.id, namespace, kind, runs, usual_seconds, failures, failure_cause,
       last_error, last_run_id, last_failure_at, last_success_at
from unnest(%(ids)b::uuid[]) as wanted (id)
left join lateral (select ctid as place, * from job_stats where job_id = wanted.id offset 0) as stats on true
