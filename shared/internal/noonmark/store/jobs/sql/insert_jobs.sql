-- Inserts new jobs. A row that conflicts with one of the two unique keys (idempotency key; name of a recurring job) is
-- left out, whichever client wrote the other; the caller finds out why. The ids of the inserted rows are returned as one string
-- of 16 bytes each, and only if some were left out. A column with equal values is passed as one value.
with made as (
    insert into jobs (id, namespace, name, kind, handler, lane, pool, shard, schedule, policy, work, labels, description,
                      owner, idempotency_key, unique_name, state, paused_at, paused_by, version, event_sequence,
                      created_at, updated_at)
    select u.id, coalesce(u.namespace, %(namespaces_all)s::text), coalesce(u.name, %(names_all)s::text),
           coalesce(u.kind, %(kinds_all)s::text), coalesce(u.handler, %(handlers_all)s::text),
           coalesce(u.lane, %(lanes_all)s::smallint), coalesce(u.pool, %(pools_all)s::text), u.shard,
           coalesce(u.schedule, %(schedules_all)s::text)::jsonb, coalesce(u.policy, %(policies_all)s::text)::jsonb,
           coalesce(u.work, %(works_all)s::text)::json, coalesce(u.labels, %(labels_all)s::text)::jsonb,
           coalesce(u.description, %(descriptions_all)s::text), coalesce(u.owner, %(owners_all)s::text),
           coalesce(u.idempotency_key, %(idempotency_keys_all)s::text),
           coalesce(u.unique_name, %(unique_names_all)s::bool), coalesce(u.state, %(states_all)s::text),
           case when coalesce(u.state, %(states_all)s::text) = 'paused' then %(now)s::timestamptz end,
           case when coalesce(u.state, %(states_all)s::text) = 'paused' then 'namespace' end, 1,
           coalesce(u.sequence, %(sequences_all)s::bigint), %(now)s::timestamptz, %(now)s::timestamptz
    from unnest(%(ids)b::uuid[], %(shards)b::smallint[], %(namespaces)b::text[], %(names)b::text[], %(kinds)b::text[],
                %(handlers)b::text[], %(lanes)b::smallint[], %(pools)b::text[], %(schedules)b::text[],
                %(policies)b::text[], %(works)b::text[], %(labels)b::text[], %(descriptions)b::text[],
                %(owners)b::text[], %(idempotency_keys)b::text[], %(unique_names)b::bool[], %(sequences)b::bigint[],
                %(states)b::text[])
         as u (id, shard, namespace, name, kind, handler, lane, pool, schedule, policy, work, labels, description, owner,
               idempotency_key, unique_name, sequence, state)
    on conflict do nothing
    returning id
)
select count(*), case when count(*) < %(wanted)s::int then string_agg(uuid_send(made.id), ''::bytea) end
from made
