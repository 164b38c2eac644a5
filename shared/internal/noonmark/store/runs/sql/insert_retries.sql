-- Writes the timers of retries. Retries wait in Postgres, never in a worker, so a restart loses none.
insert into timers (fire_at, scheduled_for, job_id, run_id, job_version, shard, lane, kind, namespace, pool)
select noonmark_now() + make_interval(secs => delay), scheduled_for, job_id, run_id, job_version, shard, lane, 2, namespace, pool
from unnest(%(delays)b::float8[], %(scheduled_for)b::timestamptz[], %(job_ids)b::uuid[], %(run_ids)b::uuid[],
            %(job_versions)b::int[], %(shards)b::smallint[], %(lanes)b::smallint[], %(namespaces)b::text[], %(pools)b::text[])
     as u (delay, scheduled_for, job_id, run_id, job_version, shard, lane, namespace, pool)
