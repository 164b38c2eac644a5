-- Which of these jobs belong to a trace of a client's, and to which: asked for each batch where traces are on.
select job.id, job.traceparent
from unnest(%(ids)b::uuid[]) as wanted (id),
     lateral (select id, traceparent from jobs where jobs.id = wanted.id offset 0) as job
where job.traceparent is not null
