-- Locks start batches that have no live worker, or whose runs are past every timeout in spite of heartbeats. The batches of
-- a lapsed worker are checked in every pass: a start that committed after the lapse is found by the next one. All batches of a
-- worker are taken together: whether a run was alone when its worker was lost is judged by all that it held.
with orphaned as (
    select batch.id, batch.worker,
           exists (select from workers
                   where workers.id = batch.worker and workers.lapsed_at is null and workers.left_at is null) as is_live
    from start_batches as batch
    where batch.overdue_at < noonmark_now()
       or not exists (select from workers
                      where workers.id = batch.worker and workers.lapsed_at is null and workers.left_at is null)
    order by batch.id
    limit %(limit)s
)
select batch.id, batch.worker, batch.first_scheduled_for, batch.last_scheduled_for, batch.run_ids, batch.started_at,
       batch.id in (select id from orphaned where is_live) as is_live
from start_batches as batch
where batch.id in (select id from orphaned)
   or batch.worker in (select worker from orphaned where not is_live)
order by batch.id
for update of batch skip locked
