-- Reads the dead letters of a step whose run does not exist, in the columns of `read_dead_letters_of_runs`. Both are deleted
-- together with their day of the ledger.
select run_id::text as run, namespace, attempts, reason, left(error, %(error_chars)s::int) as error,
       scheduled_for, job_id::text as job, kind, name, fingerprint, died_at
from dead_letters
where run_id > %(after)s and run_id <= %(last)s and scheduled_for >= %(since)s and scheduled_for < %(until)s
  and died_at not between %(settled)s and %(soon)s and (%(namespaces)s::text[] is null or namespace = any (%(namespaces)s))
  and not exists (select from runs where runs.id = dead_letters.run_id and runs.scheduled_for = dead_letters.scheduled_for)
