-- Reads the attempts of the runs of a step, by their key.
select run_id::text as run, fence, attempt, outcome, started_at, finished_at, left(error, 100) as error,
       worker, scheduled_for
from attempts
where run_id = any (%(ids)s::uuid[])
