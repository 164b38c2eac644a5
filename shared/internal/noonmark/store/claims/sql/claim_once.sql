-- Claims due one-time jobs of one lane: deletes the timer and writes run and outbox row, in one statement.
-- LATERAL per shard with an inner LIMIT keeps each branch an ordered index scan; `ctid = any(array(...))`
-- makes the delete a TID scan whatever the statistics are, and never touches more rows than were locked.
-- SKIP LOCKED lets two owners of a shard share it. Outbox rows are written only for runs that were inserted: one for each run,
-- or for up to 40 runs of a namespace and pool if every dispatcher reads those (lanes 10 to 12).
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
    from made where not %(arrays)s
), numbered as (
    -- Rows stay below two kilobytes: a longer one would be stored elsewhere, at twice the cost.
    select *, (row_number() over (partition by shard, namespace, pool order by scheduled_for) - 1) / 40 as part
    from made where %(arrays)s
), enqueued_together as (
    insert into outbox (slice, lane, created_at, fence, namespace, pool, run_ids, job_ids, instants, job_versions)
    select shard, %(lane)s + 10, noonmark_now(), 1, namespace, pool,
           array_agg(id), array_agg(job_id), array_agg(scheduled_for), array_agg(job_version)
    from numbered group by shard, namespace, pool, part
)
select (select count(*) from due) as claimed, (select count(*) from made) as enqueued,
       case when %(named)s then (select array_agg(array[id, job_id]) from made) end as made
