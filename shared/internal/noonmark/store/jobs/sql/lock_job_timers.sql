-- First lock of every control statement: a claim of these timers that is in flight finishes first; later ones skip them.
-- Looked up job by job, which uses the index whatever the statistics say.
select found.job_id
from unnest(%(ids)b::uuid[]) as wanted (id),
     lateral (select job_id from timers where job_id = wanted.id for update) as found
