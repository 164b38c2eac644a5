-- First lock of a cancel of runs: the timers of the runs (retries, deadlines), so that no claim holds one of them. Timers of
-- the jobs' next instants are not locked. Found by job, because that column has an index.
select timers.run_id
from unnest(%(job_ids)b::uuid[]) as wanted (id),
     lateral (
         select run_id from timers where job_id = wanted.id and run_id = any (%(ids)b::uuid[]) for update
     ) as timers
