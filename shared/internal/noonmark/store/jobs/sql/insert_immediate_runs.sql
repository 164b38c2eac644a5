-- The fast path of jobs that are due on arrival: inserts their runs and messages in the transaction that creates the jobs.
-- Only for jobs without a rule that could defer the run. A column with equal values is passed as one value.
with created as (
    insert into runs (id, scheduled_for, queued_at, start_by, job_id, job_version, fence, lane, shard, zone_data,
                      state, origin, namespace, pool)
    select id, %(now)s, %(now)s, coalesce(start_by, %(start_by_all)s), job_id, 1, 1,
           coalesce(lane, %(lanes_all)s::smallint), shard, (select id from zone_data where active),
           'queued', 'schedule', coalesce(namespace, %(namespaces_all)s), coalesce(pool, %(pools_all)s)
    from unnest(%(ids)b::uuid[], %(job_ids)b::uuid[], %(start_by)b::timestamptz[], %(lanes)b::smallint[],
                %(shards)b::smallint[], %(namespaces)b::text[], %(pools)b::text[])
         as u (id, job_id, start_by, lane, shard, namespace, pool)
    returning id, job_id, lane, shard, namespace, pool
)
insert into outbox (slice, lane, created_at, run_id, job_id, scheduled_for, fence, job_version, namespace, pool)
select shard, lane, %(now)s, id, job_id, %(now)s, 1, 1, namespace, pool from created
