-- Finds those of the unfinished runs of a step for which a slot is taken: the overlap slot of their job, which has one key, or
-- one of a limit. The timer of a job names the instant of a run that holds the slot of the job without a row.
select runs.id::text
from runs
left join lateral (select true as taken from slots where key = runs.job_id and run_id = runs.id offset 0) as slot on true
left join lateral (
    select true as taken from timers
    where job_id = runs.job_id and kind in (1, 3) and after_at = runs.scheduled_for and runs.origin = 'schedule' limit 1
) as rowless on true
left join lateral (select true as taken from limit_slots where run_id = runs.id limit 1) as of_limit on true
where id = any (%(ids)s::uuid[]) and scheduled_for >= %(since)s and scheduled_for < %(until)s
  and (slot.taken or rowless.taken or of_limit.taken)
