-- Second lock of a redrive (it needs no timers), in the order given, which is that of ids: no job is paused, cancelled or
-- edited until the transaction ends, while other redrives can continue. Returns what decides about a run of each job.
select job.id, job.state, job.overlap
from unnest(%(ids)b::uuid[]) as wanted (id),
     lateral (
         select id, state, coalesce(policy ->> 'overlap', 'allow') as overlap from jobs where id = wanted.id for share
     ) as job
