-- What dead letters say about their jobs, asked when runs die and never before. Job by job, which uses the key whatever the
-- statistics say.
select job.id, job.kind, job.name
from unnest(%(ids)b::uuid[]) as wanted (id),
     lateral (select id, kind, name from jobs where id = wanted.id offset 0) as job
