-- The current statistics of jobs. The lock of their partitions keeps other observers away.
select stats.*
from unnest(%(ids)b::uuid[]) as wanted (id),
     lateral (select job_id, namespace, kind, runs, usual_seconds, failures, failure_cause, last_error, last_run_id,
                     last_failure_at, last_success_at
              from job_stats where job_id = wanted.id offset 0) as stats
