-- Why a job was not written: which job has its idempotency key, and which its name.
select wanted.place, by_key.id, by_name.id, by_name.event_sequence
from unnest(%(places)b::int[], %(namespaces)b::text[], %(idempotency_keys)b::text[], %(names)b::text[])
         as wanted (place, namespace, idempotency_key, name)
left join lateral (
    select id from jobs
    where jobs.namespace = wanted.namespace and jobs.idempotency_key = wanted.idempotency_key
      and jobs.idempotency_key is not null offset 0
) as by_key on true
left join lateral (
    select id, event_sequence from jobs
    where jobs.namespace = wanted.namespace and jobs.name = wanted.name and jobs.unique_name and jobs.state <> 'cancelled'
    offset 0
) as by_name on true
