-- The kinds of those jobs that recur. Looked up job by job, which uses the key whatever the statistics say.
select job.id, job.kind
from unnest(%(ids)b::uuid[]) as wanted (id),
     lateral (select id, kind, unique_name from jobs where id = wanted.id offset 0) as job
where job.unique_name
