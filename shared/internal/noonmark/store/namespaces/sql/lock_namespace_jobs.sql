-- Locks jobs whose timers are locked, and returns what is needed about each before its runs are locked.
select job.id, job.state, job.paused_by, job.shard, job.schedule is not null and not job.schedule ? 'run_at' as recurring
from unnest(%(ids)b::uuid[]) as wanted (id),
     lateral (select id, state, paused_by, shard, schedule from jobs where id = wanted.id for update) as job
