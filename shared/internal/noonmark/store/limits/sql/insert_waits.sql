-- Writes the wait rows of runs that were just written. Runs of a schedule are queued by their instants, because one claim
-- writes them in no particular order.
insert into waits (run_id, scheduled_for, job_id, reason, since, key, lane, namespace, limit_name, limit_key, start_by)
select run_id, scheduled_for, job_id, reason, coalesce(since, noonmark_now()), key, lane, namespace, limit_name, limit_key,
       start_by
from unnest(%(run_ids)b::uuid[], %(scheduled_for)b::timestamptz[], %(job_ids)b::uuid[], %(reasons)b::text[],
            %(keys)b::uuid[], %(lanes)b::smallint[], %(namespaces)b::text[], %(limit_names)b::text[],
            %(limit_keys)b::text[], %(start_by)b::timestamptz[], %(since)b::timestamptz[])
     as u (run_id, scheduled_for, job_id, reason, key, lane, namespace, limit_name, limit_key, start_by, since)
