-- Facts about jobs that outcomes do not contain. Looked up job by job, which uses the key whatever the statistics say.
select job.id, job.kind, job.unique_name
from unnest(%(ids)b::uuid[]) as wanted (id),
     lateral (select id, kind, unique_name from jobs where id = wanted.id offset 0) as job
