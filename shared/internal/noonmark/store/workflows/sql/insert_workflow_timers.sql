-- Writes timers of workflow runs: to open one, to look at its cancel, or its deadline.
insert into timers (fire_at, scheduled_for, job_id, run_id, job_version, shard, lane, kind, namespace, pool)
select coalesce(fire_at, noonmark_now()), scheduled_for, job_id, run_id, job_version, shard, lane, 5, namespace, pool
from unnest(%(fire_at)b::timestamptz[], %(scheduled_for)b::timestamptz[], %(job_ids)b::uuid[], %(run_ids)b::uuid[],
            %(job_versions)b::int[], %(shards)b::smallint[], %(lanes)b::smallint[], %(namespaces)b::text[], %(pools)b::text[])
     as u (fire_at, scheduled_for, job_id, run_id, job_version, shard, lane, namespace, pool)
