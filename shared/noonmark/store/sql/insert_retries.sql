-- Retries wait in Postgres, never in a worker: a restart loses none.
insert into timers (fire_at, scheduled_for, job_id, run_id, job_version, shard, lane, kind, namespace, pool)
select noonmark_now() + make_interval(secs => delay), scheduled_for, job_id, run_id, job_version, shard, lane, 2, namespace, pool
from unnest(%(delays)s::float8[], %(scheduled_for)s::timestamptz[], %(job_ids)s::uuid[], %(run_ids)s::uuid[],
            %(job_versions)s::int[], %(shards)s::smallint[], %(lanes)s::smallint[], %(namespaces)s::text[], %(pools)s::text[])
     as u (delay, scheduled_for, job_id, run_id, job_version, shard, lane, namespace, pool)
