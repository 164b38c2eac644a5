-- Third lock of a cancel of runs: those still in one of the states, in the order of ids, because two cancels may lock the
-- same runs.
select id, scheduled_for, state, reason, job_id, shard
from runs
where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s and state = any (%(states)b::text[])
order by id
for update
