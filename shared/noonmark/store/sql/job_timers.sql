-- First timers of new or edited jobs. Columns of equal values come as one value.
insert into timers (fire_at, scheduled_for, after_at, job_id, job_version, runs_left, after_offset, shard, lane, kind,
                    namespace, pool)
select coalesce(fire_at, %(fire_at_all)s), coalesce(scheduled_for, %(scheduled_for_all)s),
       coalesce(after_at, %(after_at_all)s::timestamptz), job_id, coalesce(job_version, %(job_versions_all)s::int),
       coalesce(runs_left, %(runs_left_all)s::int), coalesce(after_offset, %(after_offset_all)s::int), shard,
       coalesce(lane, %(lanes_all)s::smallint), coalesce(kind, %(kinds_all)s::smallint),
       coalesce(namespace, %(namespaces_all)s), coalesce(pool, %(pools_all)s)
from unnest(%(fire_at)b::timestamptz[], %(scheduled_for)b::timestamptz[], %(after_at)b::timestamptz[],
            %(job_ids)b::uuid[], %(job_versions)b::int[], %(runs_left)b::int[], %(after_offset)b::int[],
            %(shards)b::smallint[], %(lanes)b::smallint[], %(kinds)b::smallint[], %(namespaces)b::text[],
            %(pools)b::text[])
     as u (fire_at, scheduled_for, after_at, job_id, job_version, runs_left, after_offset, shard, lane, kind, namespace,
           pool)
