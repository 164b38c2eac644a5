-- First lock of a cancel of runs: their own timers (retries, deadlines), so that no claim has one of them in hand. Timers of
-- the jobs' next instants are not touched. By the jobs, which have an index.
select timers.run_id
from unnest(%(job_ids)b::uuid[]) as wanted (id),
     lateral (
         select run_id from timers where job_id = wanted.id and run_id = any (%(ids)b::uuid[]) for update
     ) as timers
