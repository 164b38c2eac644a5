-- Results and errors of task runs that have ended, by the ledger's unique key.
select task.request_id, task.result::text, task.error
from unnest(%(job_ids)b::uuid[], %(scheduled_for)b::timestamptz[], %(keys)b::text[]) as wanted (job_id, scheduled_for, key)
join lateral (
    select request_id, result, error from runs
    where runs.job_id = wanted.job_id and runs.scheduled_for = wanted.scheduled_for and runs.origin = 'task'
      and runs.request_id = wanted.key and runs.finished_at is not null offset 0
) as task on true
