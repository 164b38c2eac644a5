-- Parks runs whose message Kafka refuses permanently (unknown topic, too large, not allowed): the reason is stored, and a
-- timer tries again later, so an operator only has to create the topic.
-- Fence and reason are passed as one JSON object by run id, see `finish_detailed`.
with parked as (
    update runs
    set state = 'waiting', reason = 'undeliverable', error = %(refused)s::jsonb -> id::text ->> 1
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
      and fence = (%(refused)s::jsonb -> id::text ->> 0)::int and state = 'queued'
    returning id, scheduled_for, job_id, job_version, shard, lane, namespace, pool
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
