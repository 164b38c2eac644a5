-- Inserts the first timers of new or edited jobs. A column with equal values is passed as one value. This is a function,
-- because its plan is cached: planning costs more than inserting a few rows.
select noonmark_insert_timers(
    %(job_ids)b::uuid[], %(shards)b::smallint[], %(fire_at)b::timestamptz[], %(fire_at_all)s::timestamptz,
    %(scheduled_for)b::timestamptz[], %(scheduled_for_all)s::timestamptz,
    %(after_at)b::timestamptz[], %(after_at_all)s::timestamptz, %(after_offset)b::int[], %(after_offset_all)s::int,
    %(runs_left)b::int[], %(runs_left_all)s::int, %(job_versions)b::int[], %(job_versions_all)s::int,
    %(lanes)b::smallint[], %(lanes_all)s::smallint, %(kinds)b::smallint[], %(kinds_all)s::smallint,
    %(namespaces)b::text[], %(namespaces_all)s::text, %(pools)b::text[], %(pools_all)s::text
)
