-- First timers of new or edited jobs.
insert into timers (fire_at, scheduled_for, job_id, job_version, shard, lane, kind, namespace, pool)
select fire_at, fire_at, job_id, job_version, shard, lane, kind, namespace, pool
from unnest(%(fire_at)b::timestamptz[], %(job_ids)b::uuid[], %(job_versions)b::int[], %(shards)b::smallint[],
            %(lanes)b::smallint[], %(kinds)b::smallint[], %(namespaces)b::text[], %(pools)b::text[])
     as u (fire_at, job_id, job_version, shard, lane, kind, namespace, pool)
