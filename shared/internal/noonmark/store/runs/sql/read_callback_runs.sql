-- The live runs of callbacks, with what a verdict about them needs. A row whose fence is not the run's is of an attempt
-- that is over. Without locks: `finish_detailed` looks again when it writes.
-- The run of a task has the work of the task, and counts from when that became due.
select open.token_hash, open.deadline_at is not null and open.deadline_at <= noonmark_now() as is_over,
       run.state = 'cancelling' as cancel_requested, run.fence, run.owner, run.epoch, run.pool, noonmark_now() as now,
       coalesce(run.due_at, run.scheduled_for) as due_at,
       run.id, run.scheduled_for, run.job_id, run.job_version, run.origin, run.request_id, run.namespace, run.lane,
       run.attempt, run.losses, run.holds_slot, run.started_at, run.shard,
       case run.origin when 'task' then task.kind else coalesce(job.kind, old.kind) end,
       case run.origin when 'task' then task.handler else coalesce(job.handler, old.handler) end,
       case run.origin when 'task' then task.work::text else coalesce(job.work::text, old.work::text) end, 0, run.due_at
from unnest(%(ids)b::uuid[]) as wanted (id),
     lateral (select * from callbacks where run_id = wanted.id offset 0) as open,
     lateral (
         select * from runs
         where id = open.run_id and scheduled_for = open.scheduled_for and fence = open.fence
           and state in ('running', 'cancelling')
         offset 0
     ) as run
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
