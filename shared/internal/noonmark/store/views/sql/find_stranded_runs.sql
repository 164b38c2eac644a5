-- Runs that nothing will continue, because a row that must continue them is missing: the rule of `explain_runs` for all
-- unfinished runs. There is no index on `state`, so this reads the ledger; the caller limits the time.
select run.namespace, run.job_id, run.id, run.state, run.fault
from (
    select run.*, case
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
           end as fault
    from runs as run
     left join lateral (select since from waits where run_id = run.id offset 0) as wait on true
     left join lateral (
         select min(fire_at) as fire_at from timers where job_id = run.job_id and run_id = run.id and kind = 2
     ) as timer on true
     left join lateral (
         select min(fire_at) as fire_at from timers where job_id = run.job_id and run_id = run.id and kind = 4
     ) as deadline on true
     left join lateral (select fence, deadline_at from callbacks where run_id = run.id offset 0) as callback on true
    where run.state in ('waiting', 'retrying', 'running', 'cancelling')
) as run
where run.fault is not null
limit %(most)s
