-- Timers whose instants depend on zone data, each with the schedule of its job. All of them are read, so a scan of the
-- table and a join by hash are right here: nothing is locked, and whoever activates keeps claims and writers out.
select timers.job_id, timers.scheduled_for, timers.fire_at, timers.after_at, timers.after_offset, jobs.schedule::text,
       jobs.name, jobs.namespace, jobs.state
from timers left join jobs on jobs.id = timers.job_id
where timers.kind = 3
