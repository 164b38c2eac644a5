-- Reads the attempts of the runs of a step, by their key.
select run_id::text as run, fence, attempt, outcome, started_at, finished_at, left(error, %(error_chars)s::int) as error, worker,
       scheduled_for,
       case when %(digests)s then coalesce(encode(sha256(convert_to(error, 'UTF8')), 'hex'), '') end as error_digest
from attempts
where run_id = any (%(ids)s::uuid[])
