-- First timers of new or edited jobs. Columns of equal values come as one value.
insert into timers (fire_at, scheduled_for, job_id, job_version, shard, lane, kind, namespace, pool)
select coalesce(fire_at, %(fire_at_all)s), coalesce(fire_at, %(fire_at_all)s), job_id,
       coalesce(job_version, %(job_versions_all)s::int), shard, coalesce(lane, %(lanes_all)s::smallint),
       coalesce(kind, %(kinds_all)s::smallint), coalesce(namespace, %(namespaces_all)s), coalesce(pool, %(pools_all)s)
from unnest(%(fire_at)b::timestamptz[], %(job_ids)b::uuid[], %(job_versions)b::int[], %(shards)b::smallint[],
            %(lanes)b::smallint[], %(kinds)b::smallint[], %(namespaces)b::text[], %(pools)b::text[])
     as u (fire_at, job_id, job_version, shard, lane, kind, namespace, pool)
