-- Tells the triggers of runs of tasks that were there, and had ended, when their workflow came to them: somebody inserted them.
insert into timers (fire_at, scheduled_for, job_id, run_id, job_version, shard, lane, kind, namespace, pool)
select noonmark_now(), task.scheduled_for, task.job_id, id, job_version, shard, lane, 5, namespace, pool
from unnest(%(job_ids)b::uuid[], %(scheduled_for)b::timestamptz[], %(keys)b::text[]) as wanted (job_id, scheduled_for, key)
join lateral (
    select * from runs
    where runs.job_id = wanted.job_id and runs.scheduled_for = wanted.scheduled_for and runs.origin = 'task'
      and runs.request_id = wanted.key and runs.finished_at is not null offset 0
) as task on true
