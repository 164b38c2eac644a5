-- Locks start batches that have no live worker, or whose runs are past every timeout in spite of heartbeats. The batches of
-- a lapsed worker are checked in every pass: a start that committed after the lapse is found by the next one.
select batch.id, batch.worker, batch.first_scheduled_for, batch.last_scheduled_for, batch.run_ids, batch.started_at
from start_batches as batch
where batch.overdue_at < noonmark_now()
   or exists (select from workers
              where workers.id = batch.worker and (workers.lapsed_at is not null or workers.left_at is not null))
   or not exists (select from workers where workers.id = batch.worker)
order by batch.id
limit %(limit)s
for update of batch skip locked
