-- Counts the unfinished runs of a backfill up to a cap, and finds the oldest. Read by the run key from the position before
-- which all had finished last time, so that a long backfill does not count itself over and over.
select count(*), min(scheduled_for)
from (
    select scheduled_for from runs
    where job_id = %(job_id)s and scheduled_for >= %(first)s and scheduled_for < %(last)s
      and origin = 'backfill' and request_id = %(request_id)s and finished_at is null
    order by scheduled_for limit %(cap)s
) as live
