-- What became of instants of a job, whoever asked: the state of the newest run of each that was not skipped. Ranges of
-- skipped instants need no look, for what was skipped did not run. By the run key, a few index entries per instant.
select distinct on (scheduled_for) scheduled_for, state
from runs
where job_id = %(job_id)s and scheduled_for between %(first)s and %(last)s
  and scheduled_for = any (%(instants)b::timestamptz[]) and state <> 'skipped'
order by scheduled_for, id desc
