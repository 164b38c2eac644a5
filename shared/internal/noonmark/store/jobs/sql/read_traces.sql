-- Which of these jobs belong to a client's trace, and to which one. Read for each batch if tracing is on.
select job.id, job.traceparent
from unnest(%(ids)b::uuid[]) as wanted (id),
     lateral (select id, traceparent from jobs where jobs.id = wanted.id offset 0) as job
where job.traceparent is not null
