-- Writes planned instants into the ledger, whatever their verdict, and outbox rows for those that are queued.
-- An instant that is already in the ledger is left alone, without an outbox row: the run key makes a double claim harmless.
-- With `arrays`, an outbox row has up to 40 runs, as in `claim_once`.
-- `insert_waits` writes the wait rows of runs that wait for capacity.
with planned as (
    select * from unnest(
        %(ids)b::uuid[], %(scheduled_for)b::timestamptz[], %(last_scheduled_for)b::timestamptz[], %(instants)b::int[],
        %(job_ids)b::uuid[], %(job_versions)b::int[], %(states)b::text[], %(reasons)b::text[], %(start_by)b::timestamptz[],
        %(holds_slot)b::bool[], %(shards)b::smallint[], %(lanes)b::smallint[], %(namespaces)b::text[], %(pools)b::text[],
        %(origins)b::text[], %(request_ids)b::text[]
    ) as u (id, scheduled_for, last_scheduled_for, instants, job_id, job_version, state, reason, start_by, holds_slot,
            shard, lane, namespace, pool, origin, request_id)
), made as (
    insert into runs (id, scheduled_for, last_scheduled_for, instants, job_id, job_version, state, reason, start_by,
                      holds_slot, shard, lane, namespace, pool, origin, request_id, fence, zone_data, queued_at, finished_at)
    select id, scheduled_for, last_scheduled_for, instants, job_id, job_version, state, reason, start_by, holds_slot,
           shard, lane, namespace, pool, origin, request_id, 1, (select id from zone_data where active),
           case when state = 'queued' then noonmark_now() end,
           case when state = 'skipped' then noonmark_now() end
    from planned
    on conflict do nothing
    returning id, scheduled_for, job_id, job_version, state, reason, shard, lane, namespace, pool
), enqueued as (
    insert into outbox (slice, lane, created_at, run_id, job_id, scheduled_for, fence, job_version, namespace, pool)
    select shard, lane, noonmark_now(), id, job_id, scheduled_for, 1, job_version, namespace, pool
    from made where state = 'queued' and not %(arrays)s
), numbered as (
    select *, (row_number() over (partition by shard, lane, namespace, pool order by scheduled_for) - 1) / 40 as part
    from made where state = 'queued' and %(arrays)s
), enqueued_together as (
    insert into outbox (slice, lane, created_at, fence, namespace, pool, run_ids, job_ids, instants, job_versions)
    select shard, lane + 10, noonmark_now(), 1, namespace, pool,
           array_agg(id order by scheduled_for, id), array_agg(job_id order by scheduled_for, id),
           array_agg(scheduled_for order by scheduled_for, id), array_agg(job_version order by scheduled_for, id)
    from numbered group by shard, lane, namespace, pool, part
    order by shard, lane, namespace, pool, part
), waiting as (
    insert into waits (run_id, scheduled_for, job_id, reason, since)
    select id, scheduled_for, job_id, reason, noonmark_now() from made where state = 'waiting' and reason = 'paused'
)
select id from made
