-- Writes outbox rows for the runs that the previous statement of the same transaction requeued.
insert into outbox (slice, lane, created_at, run_id, job_id, scheduled_for, fence, job_version, namespace, pool)
select slice, lane, noonmark_now(), run_id, job_id, scheduled_for, fence, job_version, namespace, pool
from unnest(%(slices)b::smallint[], %(lanes)b::smallint[], %(run_ids)b::uuid[], %(job_ids)b::uuid[],
            %(scheduled_for)b::timestamptz[], %(fences)b::int[], %(job_versions)b::int[], %(namespaces)b::text[],
            %(pools)b::text[])
     as u (slice, lane, run_id, job_id, scheduled_for, fence, job_version, namespace, pool)
