-- Reads the state of the newest run, not counting skipped ones, of each of the instants of a job, whatever its origin, except
-- for runs of tasks: they have the instant of their workflow run. Ranges of skipped instants are not read, because they did not
-- run. By the run key, a few index entries per instant.
select distinct on (scheduled_for) scheduled_for, state
from runs
where job_id = %(job_id)s and scheduled_for between %(first)s and %(last)s
  and scheduled_for = any (%(instants)b::timestamptz[]) and state <> 'skipped' and origin <> 'task'
order by scheduled_for, id desc
