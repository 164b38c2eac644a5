-- Runs of a backfill that have not ended, up to a cap, and the oldest of them. Read by the run key from the place on
-- before which all had ended the last time, so that a long backfill does not count itself over and over.
select count(*), min(scheduled_for)
from (
    select scheduled_for from runs
    where job_id = %(job_id)s and scheduled_for >= %(first)s and scheduled_for < %(last)s
      and origin = 'backfill' and request_id = %(request_id)s and finished_at is null
    order by scheduled_for limit %(cap)s
) as live
