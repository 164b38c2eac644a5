-- Runs that workers hold of whom nothing was heard for long, counted up to a cap.
with held as materialized (
    select worker, run_ids, first_scheduled_for, last_scheduled_for, started_at from start_batches
    where started_at < noonmark_now() - make_interval(secs => %(silence)s)
      and not exists (select from workers where workers.id = start_batches.worker
                                            and workers.beat_at >= noonmark_now() - make_interval(secs => %(silence)s))
    order by id limit %(batches)s
), stuck as (
    select held.worker, run.id, run.started_at
    from held
    cross join lateral (
        select id, started_at from runs
        where id = any (held.run_ids) and scheduled_for between held.first_scheduled_for and held.last_scheduled_for
          and owner = held.worker and started_at = held.started_at and state in ('running', 'cancelling')
    ) as run
    limit %(most)s
)
select count(*) as runs, count(distinct worker) as workers, min(started_at) as since,
       (array_agg(id order by started_at, id))[1] as run_id
from stuck
