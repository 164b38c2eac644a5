-- Finds those of the unfinished runs of a step for which a slot is taken: the overlap slot of their job, which has one key, or
-- one of a limit.
select runs.id::text
from runs
left join lateral (select true as taken from slots where key = runs.job_id and run_id = runs.id offset 0) as slot on true
left join lateral (select true as taken from limit_slots where run_id = runs.id limit 1) as of_limit on true
where id = any (%(ids)s::uuid[]) and scheduled_for >= %(since)s and scheduled_for < %(until)s
  and (slot.taken or of_limit.taken)
