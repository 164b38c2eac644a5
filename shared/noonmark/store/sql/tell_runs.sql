-- Outbox rows for runs that were queued again by the statement before, in the same transaction.
insert into outbox (slice, lane, created_at, run_id, job_id, scheduled_for, fence, job_version, namespace, pool)
select slice, lane, noonmark_now(), run_id, job_id, scheduled_for, fence, job_version, namespace, pool
from unnest(%(slices)s::smallint[], %(lanes)s::smallint[], %(run_ids)s::uuid[], %(job_ids)s::uuid[],
            %(scheduled_for)s::timestamptz[], %(fences)s::int[], %(job_versions)s::int[], %(namespaces)s::text[],
            %(pools)s::text[])
     as u (slice, lane, run_id, job_id, scheduled_for, fence, job_version, namespace, pool)
