-- Timers that no claim settles as the job's schedule says: their job is gone, their instant cannot be read by any driver, or
-- they are far later than their job allows. Those more than a year ahead are only candidates, because a schedule can have such
-- an instant; the caller compares them with the schedule.
with spaced as (
    select timers.*, job.id is null as orphaned, job.name, job.state, job.schedule,
           coalesce(job.state = 'active' and space.paused_at is null, false) as fires,
           make_interval(secs => coalesce((job.schedule ->> 'jitter_seconds')::float8, 0) + %(slack_seconds)s) as late,
           scheduled_for between '0001-01-02 00:00+00' and '9999-12-31 00:00+00'
           and fire_at between '0001-01-02 00:00+00' and '9999-12-31 00:00+00'
           and coalesce(after_at between '0001-01-02 00:00+00' and '9999-12-31 00:00+00', true) as readable
    from timers left join jobs as job on job.id = timers.job_id left join namespaces as space on space.name = job.namespace
)
select namespace, job_id, name, run_id, kind, orphaned,
       case when not readable then concat_ws(', ', scheduled_for, fire_at, after_at) end as unreadable,
       case when readable then scheduled_for end as scheduled_for, case when readable then fire_at end as fire_at,
       readable and after_at is not null and after_at = scheduled_for as settled, schedule::text, noonmark_now() as now
from spaced
where orphaned
   or (kind in (0, 1, 3) and (
          not readable
          or (fires and (scheduled_for > noonmark_now() + interval '366 days'
                         or (fire_at > greatest(scheduled_for, noonmark_now()) + late
                             and (fire_at < '9999-12-31 00:00+00' or after_at is distinct from scheduled_for))))))
order by job_id
limit %(most)s
