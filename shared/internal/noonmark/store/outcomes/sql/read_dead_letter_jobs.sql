-- Reads what dead letters contain about their jobs; only sent when runs die. Looked up job by job, which uses the primary
-- key whatever the statistics are.
select job.id, job.kind, job.name
from unnest(%(ids)b::uuid[]) as wanted (id),
     lateral (select id, kind, name from jobs where id = wanted.id offset 0) as job
