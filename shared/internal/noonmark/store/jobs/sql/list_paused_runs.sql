-- Runs that wait because their job was paused, and whether one lacks the slot that runs of its job need: it was redriven,
-- or enqueued under another overlap rule, and another run may hold the slot. Runs of tasks need none: their workflow run has it.
select paused.run_id, paused.scheduled_for, job.id,
       job.one_by_one and run.origin is distinct from 'task'
       and not exists (select from slots where key = job.id and slots.run_id = paused.run_id)
from unnest(%(ids)b::uuid[]) as wanted (id),
     lateral (
         select id, coalesce(policy ->> 'overlap', 'allow') <> 'allow' as one_by_one from jobs where id = wanted.id offset 0
     ) as job,
     lateral (select run_id, scheduled_for from waits where job_id = job.id and reason = 'paused' offset 0) as paused
     left join lateral (
         select origin from runs
         where job.one_by_one and id = paused.run_id and runs.scheduled_for = paused.scheduled_for offset 0
     ) as run on true
