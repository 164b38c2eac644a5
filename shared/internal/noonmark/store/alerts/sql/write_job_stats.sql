-- Stores the statistics of jobs that a batch of outcomes changed. Rows that were read are updated where they are, which needs no
-- lock of its own, a quarter of the WAL: the lock of the batch's partitions keeps other observers away. The others are inserted;
-- also those that moved or were deleted since. Updates are HOT, except where `failures` changes, which has an index.
with next as materialized (
    select * from unnest(%(places)b::tid[], %(job_ids)b::uuid[], %(namespaces)b::text[], %(kinds)b::text[], %(runs)b::bigint[],
                         %(usual)b::float8[], %(failures)b::int[], %(causes)b::text[], %(errors)b::text[], %(run_ids)b::uuid[],
                         %(failed_at)b::timestamptz[], %(succeeded_at)b::timestamptz[], %(recent)b::bytea[])
                  as u (place, job_id, namespace, kind, runs, usual, failures, cause, error, run_id, failed_at, succeeded_at,
                        recent)
), updated as (
    update job_stats as kept
    set namespace = next.namespace, kind = next.kind, runs = next.runs, usual_seconds = next.usual, failures = next.failures,
        failure_cause = next.cause, last_error = next.error, last_run_id = next.run_id, last_failure_at = next.failed_at,
        last_success_at = next.succeeded_at, recent = next.recent
    from next
    where kept.ctid = any (array(select unnest(%(places)b::tid[]))) and kept.ctid = next.place and kept.job_id = next.job_id
    returning kept.job_id
)
insert into job_stats (job_id, namespace, kind, runs, usual_seconds, failures, failure_cause, last_error, last_run_id,
                       last_failure_at, last_success_at, recent)
select job_id, namespace, kind, runs, usual, failures, cause, error, run_id, failed_at, succeeded_at, recent
from next where job_id not in (select job_id from updated)
order by job_id
on conflict (job_id) do update
set namespace = excluded.namespace, kind = excluded.kind, runs = excluded.runs, usual_seconds = excluded.usual_seconds,
    failures = excluded.failures, failure_cause = excluded.failure_cause, last_error = excluded.last_error,
    last_run_id = excluded.last_run_id, last_failure_at = excluded.last_failure_at,
    last_success_at = excluded.last_success_at, recent = excluded.recent
