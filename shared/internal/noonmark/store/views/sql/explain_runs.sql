-- Runs by their ids, with related rows: position in a wait queue, next attempt, report deadline, unsent message, worker.
-- Only the outbox rows of a queued run's own slice and lane are read. `fault` says which row that must continue the run is
-- missing; `find_stranded_runs` has the same rule.
select run.id, run.job_id, run.scheduled_for, run.last_scheduled_for, run.state, run.reason, run.attempt, run.instants,
       run.lane, run.pool, run.shard, run.namespace, run.queued_at, run.started_at, run.finished_at, run.start_by, run.owner,
       run.error, wait.since as waiting_since, wait.key, wait.limit_name, wait.limit_key,
       case when timer.fire_at between '0001-01-02 00:00+00' and '9999-12-31 00:00+00' then timer.fire_at end as retry_at,
       case when callback.fence = run.fence and isfinite(callback.deadline_at) then callback.deadline_at end as report_until,
       case when run.state = 'queued' then (
           select min(created_at) from outbox
           where slice = run.shard and lane = any (array[run.lane, run.lane + 10])
             and (run_id = run.id or run.id = any (run_ids))
       ) end as unsent_since,
       worker.host, worker.pid, worker.beat_at, worker.lease_seconds, run.losses,
       last.finished_at as lost_at, last.worker as lost_worker, last.attempt as lost_attempt,
       case
           when run.state = 'retrying' or (run.state = 'waiting' and run.reason = 'undeliverable') then
               case when timer.fire_at is null then 'no_timer' when timer.fire_at >= '9999-12-31 00:00+00' then 'never' end
           when run.state = 'waiting' and wait.since is null then 'no_wait'
           when run.state in ('running', 'cancelling') and run.owner = 0 then
               case when callback.fence is distinct from run.fence then 'no_callback'
                    when deadline.fire_at is null then 'no_deadline'
                    when deadline.fire_at >= '9999-12-31 00:00+00' then 'never' end
           when run.state in ('running', 'cancelling') and run.owner = -1 and not exists (
               select from runs as task
               where task.job_id = run.job_id and task.scheduled_for = run.scheduled_for and task.origin = 'task'
                 and starts_with(task.request_id, run.id || '/')
                 and (task.finished_at is null
                      or exists (select from timers where job_id = task.job_id and run_id = task.id and kind = 5))
           ) and not exists (
               select from timers
               where job_id = run.job_id and run_id = run.id and kind = 5 and fire_at <= noonmark_now() + interval '5 minutes'
           ) then 'no_task'
       end as fault, run.origin, exists (select from pools where name = run.pool) as pool_known, task.kind, task.handler
from unnest(%(ids)b::uuid[]) as wanted (id),
     lateral (
         select * from runs
         where id = wanted.id and scheduled_for between %(first)s::timestamptz and %(last)s::timestamptz offset 0
     ) as run
     left join lateral (
         select since, key, limit_name, limit_key from waits where run_id = run.id offset 0
     ) as wait on true
     left join lateral (
         select min(fire_at) as fire_at from timers where job_id = run.job_id and run_id = run.id and kind = 2
     ) as timer on true
     left join lateral (
         select min(fire_at) as fire_at from timers where job_id = run.job_id and run_id = run.id and kind = 4
     ) as deadline on true
     left join lateral (select fence, deadline_at from callbacks where run_id = run.id offset 0) as callback on true
     left join lateral (
         select host, pid, beat_at, lease_seconds from workers
         where id = run.owner and run.state in ('running', 'cancelling') offset 0
     ) as worker on true
     left join lateral (
         select outcome, finished_at, worker, attempt from attempts where run_id = run.id order by fence desc limit 1
     ) as last on last.outcome = 'lost'
     left join lateral (
         select kind, handler from workflow_tasks
         where job_id = run.job_id and version = run.job_version
           and task_no = case run.origin when 'task' then split_part(run.request_id, '/', 2)::int end
         offset 0
     ) as task on true
order by run.scheduled_for desc, run.id desc
