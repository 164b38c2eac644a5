-- Jobs that must have a timer and have none. A one-time job loses its timer when its run is written, so it counts only while
-- its instant is to come.
select job.namespace, job.id as job_id, job.name, job.state
from jobs as job
where job.state in ('active', 'paused') and jsonb_typeof(job.schedule) = 'object'
  and case when job.schedule ? 'run_at' then (job.schedule ->> 'run_at')::timestamptz > noonmark_now()
                and not exists (select from runs where runs.job_id = job.id) else true end
  and not exists (select from timers where timers.job_id = job.id and timers.kind in (0, 1, 3))
order by job.id
limit %(most)s
