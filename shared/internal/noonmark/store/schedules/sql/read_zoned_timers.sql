-- Timers whose instants depend on zone data, each with the schedule of its job. All of them are read, so a sequential scan
-- and a hash join are appropriate: nothing is locked, and the activation keeps out claims and writers.
select timers.job_id, timers.scheduled_for, timers.fire_at, timers.after_at, timers.after_offset, jobs.schedule::text,
       jobs.name, jobs.namespace, jobs.state
from timers left join jobs on jobs.id = timers.job_id
where timers.kind = 3
