-- Locks the planned timers of jobs that use a calendar, before the jobs: a claim of them that is in flight finishes first;
-- later ones skip them. Looked up job by job, as in `replan_calendar_timers`.
with used as materialized (
    select id from jobs
    where namespace = %(namespace)s and (schedule ? 'calendars' or schedule ? 'any') and schedule::text ~ %(pair)s
      and state <> 'cancelled'
    order by id
)
select mine.job_id
from used,
     lateral (select job_id from timers where job_id = used.id and kind in (1, 3) for update) as mine
