-- Which unfinished runs a cancel means: jobs by what is known of them, then their runs by the run key, day by day. What is
-- null does not matter. Nothing is locked: each step locks its own runs and looks at them again.
select live.id, live.scheduled_for
from (
    select id from jobs
    where (%(job)s::uuid is null or id = %(job)s) and (%(name)s::text is null or name = %(name)s)
      and (%(namespace)s::text is null or namespace = %(namespace)s)
      and (%(labels)s::jsonb is null or labels @> %(labels)s::jsonb)
    offset 0
) as wanted,
     lateral (
         select id, scheduled_for from runs
         where job_id = wanted.id and state = any (%(states)s::text[])
           and scheduled_for >= %(after)s and scheduled_for < %(before)s
     ) as live
order by live.scheduled_for, live.id
limit %(limit)s
