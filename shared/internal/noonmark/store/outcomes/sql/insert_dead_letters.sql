-- Stores dead letters for runs that died; they stay until their runs are redriven or discarded.
insert into dead_letters (run_id, scheduled_for, job_id, namespace, attempts, reason, error, kind, name, fingerprint, died_at)
select run_id, scheduled_for, job_id, namespace, attempts, reason, error, kind, name, fingerprint, noonmark_now()
from unnest(%(run_ids)b::uuid[], %(scheduled_for)b::timestamptz[], %(job_ids)b::uuid[], %(namespaces)b::text[],
            %(attempts)b::int[], %(reasons)b::text[], %(errors)b::text[], %(kinds)b::text[], %(names)b::text[],
            %(fingerprints)b::text[])
     as u (run_id, scheduled_for, job_id, namespace, attempts, reason, error, kind, name, fingerprint)
on conflict (run_id) do nothing
