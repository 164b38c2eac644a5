-- Adds to the counts of windows. Partitions share the windows of one-time jobs, for which order does not matter.
insert into outcome_windows as kept (window_at, job_id, namespace, kind, succeeded, failed, dead, skipped, other, seconds_buckets)
select window_at, job_id, namespace, kind, succeeded, failed, dead, skipped, other, buckets::int[]
from unnest(%(window_at)b::timestamptz[], %(job_ids)b::uuid[], %(namespaces)b::text[], %(kinds)b::text[],
            %(succeeded)b::int[], %(failed)b::int[], %(dead)b::int[], %(skipped)b::int[], %(other)b::int[], %(buckets)b::text[])
     as u (window_at, job_id, namespace, kind, succeeded, failed, dead, skipped, other, buckets)
order by job_id, window_at, namespace, kind
on conflict (job_id, window_at, namespace, kind) do update
set succeeded = kept.succeeded + excluded.succeeded, failed = kept.failed + excluded.failed, dead = kept.dead + excluded.dead,
    skipped = kept.skipped + excluded.skipped, other = kept.other + excluded.other,
    seconds_buckets = (
        select array_agg(coalesce(was, 0) + coalesce(more, 0) order by place)
        from unnest(kept.seconds_buckets, excluded.seconds_buckets) with ordinality as b (was, more, place))
