-- Which of these jobs are held: their retries wait for the resume. The lock makes a resume that is under way end first,
-- or wait and find what was held here.
select held.id
from unnest(%(ids)b::uuid[]) as wanted (id),
     lateral (
         select id from jobs
         where id = wanted.id
           and (state = 'paused' or exists (select from namespaces where name = jobs.namespace and paused_at is not null))
         for share of jobs
     ) as held
