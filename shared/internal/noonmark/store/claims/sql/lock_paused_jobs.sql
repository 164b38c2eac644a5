-- Which of these jobs are held, so that their retries wait for the resume, and which have limits, whose retries need room
-- first. The lock makes a resume that is under way end first, or wait and find what was held here.
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
