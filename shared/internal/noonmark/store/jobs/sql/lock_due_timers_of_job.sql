-- The due timers of one locked job, with the columns of `lock_planned_timers`, including those whose instant is due but
-- waits for its jitter. Timers deferred by a pause, and instants that no driver can read, are left out.
select timers.ctid::text as place, timers.scheduled_for, timers.after_at, timers.job_id, timers.job_version,
       timers.runs_left, timers.after_offset, timers.shard, timers.namespace, timers.pool, jobs.state,
       jobs.schedule::text as schedule, jobs.policy::text as policy, jobs.created_at, jobs.updated_at, jobs.resumed_at,
       jobs.resume_choice, noonmark_now() as now, (select ledger_floor from install) as floor,
       timers.namespace in (select name from namespaces where max_in_flight is not null) as capped
from timers join jobs on jobs.id = timers.job_id
where timers.job_id = %(job_id)s and timers.kind in (1, 3) and timers.scheduled_for <= noonmark_now()
  and timers.fire_at < %(never)s and timers.scheduled_for >= '0001-01-02 00:00+00'
  and coalesce(timers.after_at between '0001-01-02 00:00+00' and '9999-12-31 00:00+00', true)
