-- Stores the statistics of jobs after the outcomes of a batch.
insert into job_stats (job_id, namespace, kind, runs, usual_seconds, failures, failure_cause, last_error, last_run_id,
                       last_failure_at, last_success_at)
select * from unnest(%(job_ids)b::uuid[], %(namespaces)b::text[], %(kinds)b::text[], %(runs)b::bigint[],
                     %(usual)b::float8[], %(failures)b::int[], %(causes)b::text[], %(errors)b::text[],
                     %(run_ids)b::uuid[], %(failed_at)b::timestamptz[], %(succeeded_at)b::timestamptz[])
              as u (job_id, namespace, kind, runs, usual, failures, cause, error, run_id, failed_at, succeeded_at)
order by job_id
on conflict (job_id) do update
set namespace = excluded.namespace, kind = excluded.kind, runs = excluded.runs, usual_seconds = excluded.usual_seconds,
    failures = excluded.failures, failure_cause = excluded.failure_cause, last_error = excluded.last_error,
    last_run_id = excluded.last_run_id, last_failure_at = excluded.last_failure_at,
    last_success_at = excluded.last_success_at
