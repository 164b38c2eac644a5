-- Reads the newest attempts of runs that have just died, for the dead letter event: by key, a bounded number per run.
select newest.*
from unnest(%(ids)b::uuid[]) as wanted (id),
     lateral (
         select run_id, attempt as number, fence, outcome, error, worker, started_at, finished_at, count(*) over () as total
         from attempts where run_id = wanted.id order by fence desc limit %(limit)s
     ) as newest
