-- The runs of the tasks of workflow runs, of all generations. They are found by the ledger's unique key.
select wanted.workflow_id, task.id, task.request_id, task.state, task.reason
from unnest(%(ids)b::uuid[], %(scheduled_for)b::timestamptz[], %(job_ids)b::uuid[])
         as wanted (workflow_id, scheduled_for, job_id)
join lateral (
    select id, request_id, state, reason from runs
    where runs.job_id = wanted.job_id and runs.scheduled_for = wanted.scheduled_for and runs.origin = 'task'
      and split_part(runs.request_id, '/', 1) = wanted.workflow_id::text
    offset 0
) as task on true
