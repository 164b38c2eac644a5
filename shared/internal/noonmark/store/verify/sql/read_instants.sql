-- Reads which instants of jobs have a row in a window, each job by its index, and the row before the window: a summary of
-- skipped instants can reach into it. Rows of tasks are left out: they have the instant of their workflow run.
select runs.id::text as run, wanted.id::text as job, scheduled_for, last_scheduled_for, state, reason
from unnest(%(ids)s::uuid[]) as wanted (id)
cross join lateral (
    select id, scheduled_for, last_scheduled_for, state, reason
    from runs
    where job_id = wanted.id and scheduled_for >= %(since)s and scheduled_for < %(until)s and origin <> 'task'
    union all
    (select id, scheduled_for, last_scheduled_for, state, reason
     from runs
     where job_id = wanted.id and scheduled_for < %(since)s and origin <> 'task'
     order by scheduled_for desc limit 1)
) as runs
