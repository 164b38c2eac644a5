-- Inserts a timer at the first unsettled instant of a cancelled job, from which the trigger settles the rest.
insert into timers (fire_at, scheduled_for, job_id, job_version, shard, lane, kind, namespace, pool)
select noonmark_now(), %(due)s, id, version, shard, lane, 1, namespace, pool from jobs where id = %(job_id)s
