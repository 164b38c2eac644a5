-- Parks runs whose message Kafka will never take as it is (unknown topic, too large, not allowed): the
-- reason is kept, and a timer tries again later, so that making the topic is all an operator must do.
with parked as (
    update runs
    set state = 'waiting', reason = 'undeliverable', error = failed.reason
    from unnest(%(ids)b::uuid[], %(scheduled_for)b::timestamptz[], %(fences)b::int[], %(reasons)b::text[])
         as failed (id, scheduled_for, fence, reason)
    where runs.id = failed.id and runs.scheduled_for = failed.scheduled_for and runs.fence = failed.fence
      and runs.state = 'queued'
    returning runs.id, runs.scheduled_for, runs.job_id, runs.job_version, runs.shard, runs.lane, runs.namespace, runs.pool
), waiting as (
    insert into waits (run_id, scheduled_for, job_id, reason, since)
    select id, scheduled_for, job_id, 'undeliverable', noonmark_now() from parked
    on conflict (run_id) do update set reason = excluded.reason, since = excluded.since
), later as (
    insert into timers (fire_at, scheduled_for, job_id, run_id, job_version, shard, lane, kind, namespace, pool)
    select noonmark_now() + make_interval(secs => %(retry_seconds)s), scheduled_for, job_id, id, job_version, shard, lane,
           2, namespace, pool
    from parked
)
select count(*) as parked from parked
