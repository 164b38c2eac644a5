-- Runs whose attempts are used up, kept for people until they are redriven or discarded.
insert into dead_letters (run_id, scheduled_for, job_id, namespace, attempts, reason, error, died_at)
select run_id, scheduled_for, job_id, namespace, attempts, reason, error, noonmark_now()
from unnest(%(run_ids)s::uuid[], %(scheduled_for)s::timestamptz[], %(job_ids)s::uuid[], %(namespaces)s::text[],
            %(attempts)s::int[], %(reasons)s::text[], %(errors)s::text[])
     as u (run_id, scheduled_for, job_id, namespace, attempts, reason, error)
on conflict (run_id) do nothing
