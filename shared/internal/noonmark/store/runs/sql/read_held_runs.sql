-- Runs that a worker owns, with what a verdict about them needs. Without locks: `finish_detailed` looks again when it writes.
-- The run of a task has the work of the task, and counts from when that became due.
select run.state = 'cancelling' as cancel_requested, run.fence, run.pool, noonmark_now() as now,
       coalesce(run.due_at, run.scheduled_for) as due_at,
       run.id, run.scheduled_for, run.job_id, run.job_version, run.origin, run.request_id, run.namespace, run.lane,
       run.attempt, run.losses, run.holds_slot, run.started_at, run.shard,
       case run.origin when 'task' then task.kind else coalesce(job.kind, old.kind) end,
       case run.origin when 'task' then task.handler else coalesce(job.handler, old.handler) end,
       case run.origin when 'task' then task.work::text else coalesce(job.work::text, old.work::text) end, 0, run.due_at
from runs as run
     left join lateral (
         select kind, handler, work from jobs where id = run.job_id and version = run.job_version offset 0
     ) as job on true
     left join lateral (
         select kind, handler, work from job_versions
         where job_id = run.job_id and version = run.job_version offset 0
     ) as old on true
     left join lateral (
         select kind, handler, work from workflow_tasks
         where job_id = run.job_id and version = run.job_version
           and task_no = case run.origin when 'task' then split_part(run.request_id, '/', 2)::int end
         offset 0
     ) as task on true
where run.id = any (%(ids)b::uuid[]) and run.scheduled_for between %(first)s and %(last)s
  and run.owner = %(worker)s and run.epoch = %(epoch)s and run.state in ('running', 'cancelling')
