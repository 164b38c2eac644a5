-- Runs owned by workers without a recent heartbeat, counted up to a cap.
with batch as materialized (
    select worker, run_ids, first_scheduled_for, last_scheduled_for, started_at from start_batches
    where started_at < noonmark_now() - make_interval(secs => %(silence)s)
      and not exists (select from workers where workers.id = start_batches.worker
                                            and workers.beat_at >= noonmark_now() - make_interval(secs => %(silence)s))
    order by id limit %(batches)s
), stuck as (
    select batch.worker, run.id, run.started_at
    from batch
    cross join lateral (
        select id, started_at from runs
        where id = any (batch.run_ids) and scheduled_for between batch.first_scheduled_for and batch.last_scheduled_for
          and owner = batch.worker and started_at = batch.started_at and state in ('running', 'cancelling')
    ) as run
    limit %(most)s
)
select count(*) as runs, count(distinct worker) as workers, min(started_at) as since,
       (array_agg(id order by started_at, id))[1] as run_id
from stuck
