-- Reads the dead letters of the runs of a step, by their key.
select run_id::text as run, namespace, attempts, reason, left(error, %(error_chars)s::int) as error,
       scheduled_for, job_id::text as job, kind, name, fingerprint, died_at
from dead_letters
where run_id = any (%(ids)s::uuid[])
