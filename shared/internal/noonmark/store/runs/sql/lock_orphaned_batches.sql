-- Start batches without a living worker, or with runs past every timeout whatever the heartbeat says.
-- A gone worker is looked at again and again: a start that committed after its lapse is found the next time.
select batch.id, batch.worker, batch.first_scheduled_for, batch.last_scheduled_for, batch.run_ids, batch.started_at
from start_batches as batch
where batch.overdue_at < noonmark_now()
   or exists (select from workers
              where workers.id = batch.worker and (workers.lapsed_at is not null or workers.left_at is not null))
   or not exists (select from workers where workers.id = batch.worker)
order by batch.id
limit %(limit)s
for update of batch skip locked
