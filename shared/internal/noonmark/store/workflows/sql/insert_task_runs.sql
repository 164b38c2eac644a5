-- Writes the runs of tasks whose fate is known: queued with their outbox rows, waiting for capacity, or skipped with the reason.
-- The instant of a task's run is that of its workflow, so that they are in one day of the ledger; it is due now. A run that
-- exists already is left alone: the key makes a second decision harmless. Tasks have no order but that of their workflow: `key`
-- tells the relay to spread them over the partitions, where the runs of other jobs stay together.
with decided as (
    select * from unnest(
        %(ids)b::uuid[], %(scheduled_for)b::timestamptz[], %(job_ids)b::uuid[], %(job_versions)b::int[], %(states)b::text[],
        %(reasons)b::text[], %(start_by)b::timestamptz[], %(shards)b::smallint[], %(lanes)b::smallint[], %(namespaces)b::text[],
        %(pools)b::text[], %(request_ids)b::text[]
    ) as u (id, scheduled_for, job_id, job_version, state, reason, start_by, shard, lane, namespace, pool, request_id)
), made as (
    insert into runs (id, scheduled_for, job_id, job_version, state, reason, start_by, shard, lane, namespace, pool, origin,
                      request_id, fence, zone_data, due_at, queued_at, finished_at)
    select id, scheduled_for, job_id, job_version, state, reason, start_by, shard, lane, namespace, pool, 'task', request_id, 1,
           (select id from zone_data where active), noonmark_now(),
           case when state = 'queued' then noonmark_now() end,
           case when state = 'skipped' then noonmark_now() end
    from decided
    on conflict do nothing
    returning id, scheduled_for, job_id, job_version, state, reason, shard, lane, namespace, pool
), enqueued as (
    insert into outbox (slice, lane, created_at, run_id, job_id, scheduled_for, fence, job_version, namespace, pool, key)
    select shard, lane, noonmark_now(), id, job_id, scheduled_for, 1, job_version, namespace, pool, ''
    from made where state = 'queued' and not %(arrays)s
), numbered as (
    -- As in `claim_once`: rows with up to 40 runs, if every dispatcher reads those.
    select *, (row_number() over (partition by shard, lane, namespace, pool order by scheduled_for) - 1) / 40 as part
    from made where state = 'queued' and %(arrays)s
), enqueued_together as (
    insert into outbox (slice, lane, created_at, fence, namespace, pool, key, run_ids, job_ids, instants, job_versions)
    select shard, lane + 10, noonmark_now(), 1, namespace, pool, '',
           array_agg(id), array_agg(job_id), array_agg(scheduled_for), array_agg(job_version)
    from numbered group by shard, lane, namespace, pool, part
), waiting as (
    insert into waits (run_id, scheduled_for, job_id, reason, since)
    select id, scheduled_for, job_id, reason, noonmark_now() from made where state = 'waiting' and reason = 'paused'
)
-- Nearly always all rows are written, and their number says all.
select (select count(*) from made) as written,
       case when (select count(*) from made) < cardinality(%(ids)b::uuid[]) then (select array_agg(id) from made) end as ids
