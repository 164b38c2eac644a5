-- Locks one backfill for a step, before the timers of its job, the job and its runs. A second trigger that still considers
-- itself the owner of the shard finds the backfill locked or advanced.
select id, job_id, namespace, pool, shard, job_version, schedule::text, mode, until_at, next_at, ended_to, state_reason,
       noonmark_now() as now
from backfills where id = %(id)s and state = 'running'
for update skip locked
