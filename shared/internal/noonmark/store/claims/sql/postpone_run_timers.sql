-- Writes the timers of retries again whose runs another session has locked: they are due again a second later, and the other
-- retries of the claim are queued now. The row of a run can be read although it is locked.
insert into timers (fire_at, scheduled_for, job_id, run_id, job_version, shard, lane, kind, namespace, pool)
select noonmark_now() + interval '1 s', scheduled_for, job_id, id, job_version, shard, lane, 2, namespace, pool
from runs
where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
