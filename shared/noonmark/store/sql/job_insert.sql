-- Writes new jobs. A row that meets one of the two unique keys (idempotency key; name of a recurring job) is
-- left out, whoever wrote the other one; the caller looks up why. Ids of the rows written come back as one
-- string of 16 bytes each, and only where some were left out. Columns of equal values come as one value.
with made as (
    insert into jobs (id, namespace, name, kind, handler, lane, pool, shard, schedule, policy, work, labels, description,
                      owner, idempotency_key, unique_name, state, paused_at, paused_by, version, event_sequence, created_at,
                      updated_at)
    select id, coalesce(namespace, %(namespaces_all)s), coalesce(name, %(names_all)s), coalesce(kind, %(kinds_all)s),
           coalesce(handler, %(handlers_all)s), coalesce(lane, %(lanes_all)s::smallint), coalesce(pool, %(pools_all)s), shard,
           coalesce(schedule, %(schedules_all)s)::jsonb, coalesce(policy, %(policies_all)s)::jsonb,
           coalesce(work, %(works_all)s)::json, coalesce(labels, %(labels_all)s)::jsonb,
           coalesce(description, %(descriptions_all)s), coalesce(owner, %(owners_all)s),
           coalesce(idempotency_key, %(idempotency_keys_all)s), coalesce(unique_name, %(unique_names_all)s::bool),
           coalesce(state, %(states_all)s),
           case when coalesce(state, %(states_all)s) = 'paused' then %(now)s::timestamptz end,
           case when coalesce(state, %(states_all)s) = 'paused' then 'namespace' end, 1,
           coalesce(event_sequence, %(sequences_all)s::bigint), %(now)s, %(now)s
    from unnest(
        %(ids)b::uuid[], %(namespaces)b::text[], %(names)b::text[], %(kinds)b::text[], %(handlers)b::text[],
        %(lanes)b::smallint[], %(pools)b::text[], %(shards)b::smallint[], %(schedules)b::text[], %(policies)b::text[],
        %(works)b::text[], %(labels)b::text[], %(descriptions)b::text[], %(owners)b::text[],
        %(idempotency_keys)b::text[], %(unique_names)b::bool[], %(sequences)b::bigint[], %(states)b::text[]
    ) as u (id, namespace, name, kind, handler, lane, pool, shard, schedule, policy, work, labels, description, owner,
            idempotency_key, unique_name, event_sequence, state)
    on conflict do nothing
    returning id
)
select count(*), case when count(*) < %(wanted)s then string_agg(uuid_send(id), ''::bytea) end from made
