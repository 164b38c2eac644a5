-- Requeues runs whose message is provably gone: acknowledged (no outbox row) and passed by the group, or its topic was
-- lost. Age alone proves nothing, so `passed_until` comes from measured positions.
-- Queued runs have no index (it would cost every start and outcome its HOT update), so this reads all days that it searches
-- back; it does so once for all topics, and rarely.
with unsent as materialized (
    select run_id from outbox where run_id is not null
    union all
    select unnest(run_ids) from outbox where run_ids is not null
), vanished as (
    update runs
    set fence = fence + 1, queued_at = noonmark_now()
    from unnest(%(pools)b::text[], %(lanes)b::smallint[], %(passed_until)b::timestamptz[])
         as passed (pool, lane, until)
    where runs.scheduled_for >= %(since)s and runs.state = 'queued'
      and runs.pool = passed.pool and runs.lane = passed.lane and runs.queued_at < passed.until
      and not exists (select from unsent where unsent.run_id = runs.id)
    returning runs.id, runs.scheduled_for, runs.job_id, runs.job_version, runs.fence, runs.shard, runs.lane,
              runs.namespace, runs.pool
), enqueued as (
    insert into outbox (slice, lane, created_at, run_id, job_id, scheduled_for, fence, job_version, namespace, pool)
    select shard, lane, noonmark_now(), id, job_id, scheduled_for, fence, job_version, namespace, pool from vanished
    returning 1
)
select count(*) as resent from enqueued
