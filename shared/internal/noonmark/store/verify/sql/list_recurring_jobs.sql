-- Lists recurring jobs by name, some at a time, with the instant that they wait for: what is due before it must be in the
-- ledger. A timer counts only if it will fire: jitter delays it by a month at most, and only timers of paused jobs, or of jobs
-- without a next instant, are parked. An index has only the unique names of jobs that are not cancelled, so one-time jobs cost
-- nothing.
select id::text, namespace, name, state, version, created_at, updated_at as changed_at,
       (select min(scheduled_for) from timers
        where timers.job_id = jobs.id and run_id is null
          and (fire_at <= greatest(scheduled_for, noonmark_now()) + interval '32 days'
               or (fire_at = %(never)s and (jobs.state = 'paused' or after_at = scheduled_for)))) as waits_for
from jobs
where unique_name and state <> 'cancelled' and (namespace, name) > (%(namespace)s, %(name)s)
  and (%(namespaces)s::text[] is null or namespace = any (%(namespaces)s))
order by namespace, name
limit %(jobs)s
