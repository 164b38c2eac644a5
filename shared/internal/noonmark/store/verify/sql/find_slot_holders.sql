-- Finds those of the unfinished runs of a step for which the overlap slot of their job is taken. The slot of a job has one key.
select runs.id::text
from runs
cross join lateral (select from slots where key = runs.job_id and run_id = runs.id offset 0) as slot
where id = any (%(ids)s::uuid[]) and scheduled_for >= %(since)s and scheduled_for < %(until)s
