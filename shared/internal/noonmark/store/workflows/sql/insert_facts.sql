-- Tells the triggers that runs of tasks have ended: a timer for each, due now, in the transaction that ended them. A trigger that
-- has the shard advances the workflow. Other ends than those of tasks are never passed.
insert into timers (fire_at, scheduled_for, job_id, run_id, job_version, shard, lane, kind, namespace, pool)
select noonmark_now(), scheduled_for, job_id, id, job_version, shard, lane, 5, namespace, pool
from runs
where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
