-- Claims due one-time jobs of one lane: deletes the timer and writes run and outbox row, in one statement.
-- LATERAL per shard with an inner LIMIT keeps each branch an ordered index scan; `ctid = any(array(...))`
-- makes the delete a TID scan whatever the statistics are, and never touches more rows than were locked.
-- SKIP LOCKED lets two owners of a shard share it. Outbox rows are written only for runs that were inserted.
-- An instant that no driver can read, such as `infinity`, is left alone: it would stop all claims of its lane.
with due as (
    delete from timers
    where ctid = any (array(
        select claimed.ctid
        from unnest(%(shards)b::smallint[]) as owned (shard),
             lateral (
                 select ctid from timers
                 where shard = owned.shard and lane = %(lane)s and kind = 0
                   and fire_at between '0001-01-02 00:00+00' and noonmark_now()
                   and scheduled_for between '0001-01-02 00:00+00' and '9999-12-31 00:00+00'
                 order by fire_at limit %(limit)s
                 for update skip locked
             ) as claimed
    ))
    returning scheduled_for, job_id, job_version, shard, namespace, pool
), made as (
    insert into runs (id, scheduled_for, queued_at, job_id, job_version, fence, lane, shard, zone_data, state, origin,
                      namespace, pool)
    select noonmark_uuid7(), scheduled_for, noonmark_now(), job_id, job_version, 1, %(lane)s, shard,
           (select id from zone_data where active), 'queued', 'schedule', namespace, pool
    from due
    on conflict do nothing
    returning id, scheduled_for, job_id, job_version, shard, namespace, pool
), enqueued as (
    insert into outbox (slice, lane, created_at, run_id, job_id, scheduled_for, fence, job_version, namespace, pool)
    select shard, %(lane)s, noonmark_now(), id, job_id, scheduled_for, 1, job_version, namespace, pool
    from made
    returning 1
)
select (select count(*) from due) as claimed, (select count(*) from enqueued) as enqueued,
       case when %(named)s then (select array_agg(array[id, job_id]) from made) end as made
