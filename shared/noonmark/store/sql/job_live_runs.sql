-- Third lock of a control statement: the unfinished runs of a job. There is no index on `state`, which keeps
-- run updates HOT, so the runs of this one job are read by their key, day by day.
select id, scheduled_for, state, reason
from runs
where job_id = %(job_id)s and state in ('waiting', 'queued', 'running', 'retrying', 'cancelling')
order by scheduled_for, id
for update
