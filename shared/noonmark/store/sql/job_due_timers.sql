-- The due timers of one job that is locked, as `lock_planned` gives those of a shard.
select timers.ctid::text as place, timers.scheduled_for, timers.after_at, timers.job_id, timers.job_version,
       timers.runs_left, timers.after_offset, timers.shard, timers.namespace, timers.pool, jobs.state,
       jobs.schedule::text as schedule, jobs.policy::text as policy, jobs.created_at, jobs.resumed_at, jobs.resume_choice,
       noonmark_now() as now
from timers join jobs on jobs.id = timers.job_id
where timers.job_id = %(job_id)s and timers.kind in (1, 3) and timers.fire_at <= noonmark_now()
