-- Locks the runs of a backfill that are to be cancelled, after their job and before they are changed.
select id, scheduled_for, state, reason, shard, origin
from runs
where job_id = %(job_id)s and scheduled_for >= %(first)s and scheduled_for < %(last)s
  and origin = 'backfill' and request_id = %(request_id)s and state in ('waiting', 'queued', 'running', 'retrying')
order by scheduled_for, id
for update
