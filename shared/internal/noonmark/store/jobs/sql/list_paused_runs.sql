-- Runs that wait because their job was paused, and whether one lacks the slot that runs of its job need: it was redriven,
-- or enqueued under another overlap rule, and another run may hold the slot.
select paused.run_id, paused.scheduled_for, job.id,
       job.one_by_one and not exists (select from slots where key = job.id and slots.run_id = paused.run_id)
from unnest(%(ids)b::uuid[]) as wanted (id),
     lateral (
         select id, coalesce(policy ->> 'overlap', 'allow') <> 'allow' as one_by_one from jobs where id = wanted.id offset 0
     ) as job,
     lateral (select run_id, scheduled_for from waits where job_id = job.id and reason = 'paused' offset 0) as paused
