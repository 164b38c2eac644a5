-- Leaves a timer at the first instant of a cancelled job that has no verdict yet: the trigger works off the rest.
insert into timers (fire_at, scheduled_for, job_id, job_version, shard, lane, kind, namespace, pool)
select noonmark_now(), %(due)s, id, version, shard, lane, 1, namespace, pool from jobs where id = %(job_id)s
