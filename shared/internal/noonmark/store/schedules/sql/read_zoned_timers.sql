-- Timers whose instants depend on zone data, each with the schedule of its job. All of them are read, so a sequential scan
-- and a hash join are appropriate: nothing is locked, and the activation keeps out claims and writers.
-- Instants that no driver can read, such as `infinity`, are left as they are.
select timers.job_id, timers.scheduled_for, timers.fire_at, timers.after_at, timers.after_offset, jobs.schedule::text,
       jobs.name, jobs.namespace, jobs.state
from timers left join jobs on jobs.id = timers.job_id
where timers.kind = 3 and scheduled_for between '0001-01-02 00:00+00' and '9999-12-31 00:00+00'
  and fire_at between '0001-01-02 00:00+00' and '9999-12-31 00:00+00'
  and coalesce(after_at between '0001-01-02 00:00+00' and '9999-12-31 00:00+00', true)
