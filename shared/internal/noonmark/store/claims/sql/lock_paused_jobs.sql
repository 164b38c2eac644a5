-- Which of these jobs are paused, so that their retries wait for the resume, and which have limits, whose retries need
-- capacity first. Because of the lock, a running resume commits first, or waits and finds the runs that were deferred here.
select found.id, found.held
from unnest(%(ids)b::uuid[]) as wanted (id),
     lateral (
         select id, state = 'paused' or exists (select from namespaces where name = jobs.namespace and paused_at is not null)
                    as held
         from jobs
         where id = wanted.id
           and (state = 'paused' or policy ? 'limits'
                or exists (select from namespaces where name = jobs.namespace and paused_at is not null))
         for share of jobs
     ) as found
