-- The writes of a submission's transaction, as functions. Statements are never prepared by name, because there may be a
-- pooler in front of Postgres. Every session caches the plans of its functions, and parsing and planning cost more than
-- writing a few rows. The functions run as their caller, whose policies apply. A cached plan must be good for every table
-- size: nearly all functions only insert, and reads look up single keys by their index.

-- New jobs. A row that conflicts with one of the two unique keys (idempotency key; name of a recurring job) is left out,
-- whichever transaction wrote the other one. If some are left out, the ids of the written rows are returned as one string of 16 bytes
-- each.
create function noonmark_insert_jobs(
    made_at timestamptz, wanted int,
    ids uuid[], shards smallint[], namespaces text[], namespaces_all text, names text[], names_all text,
    kinds text[], kinds_all text, handlers text[], handlers_all text, lanes smallint[], lanes_all smallint,
    pools text[], pools_all text, schedules text[], schedules_all text, policies text[], policies_all text,
    works text[], works_all text, label_sets text[], label_sets_all text, descriptions text[], descriptions_all text,
    owners text[], owners_all text, idempotency_keys text[], idempotency_keys_all text,
    unique_names bool[], unique_names_all bool, sequences bigint[], sequences_all bigint, states text[], states_all text,
    out written bigint, out kept bytea
) language plpgsql as $$
begin
    with made as (
        insert into jobs (id, namespace, name, kind, handler, lane, pool, shard, schedule, policy, work, labels, description,
                          owner, idempotency_key, unique_name, state, paused_at, paused_by, version, event_sequence,
                          created_at, updated_at)
        select u.id, coalesce(u.namespace, namespaces_all), coalesce(u.name, names_all), coalesce(u.kind, kinds_all),
               coalesce(u.handler, handlers_all), coalesce(u.lane, lanes_all), coalesce(u.pool, pools_all), u.shard,
               coalesce(u.schedule, schedules_all)::jsonb, coalesce(u.policy, policies_all)::jsonb,
               coalesce(u.work, works_all)::json, coalesce(u.label_set, label_sets_all)::jsonb,
               coalesce(u.description, descriptions_all), coalesce(u.owner, owners_all),
               coalesce(u.idempotency_key, idempotency_keys_all), coalesce(u.unique_name, unique_names_all),
               coalesce(u.state, states_all), case when coalesce(u.state, states_all) = 'paused' then made_at end,
               case when coalesce(u.state, states_all) = 'paused' then 'namespace' end, 1,
               coalesce(u.sequence, sequences_all), made_at, made_at
        from unnest(ids, shards, namespaces, names, kinds, handlers, lanes, pools, schedules, policies, works, label_sets,
                    descriptions, owners, idempotency_keys, unique_names, sequences, states)
             as u (id, shard, namespace, name, kind, handler, lane, pool, schedule, policy, work, label_set,
                   description, owner, idempotency_key, unique_name, sequence, state)
        on conflict do nothing
        returning id
    )
    select count(*), case when count(*) < wanted then string_agg(uuid_send(made.id), ''::bytea) end
    into written, kept from made;
end
$$;

-- The next instants of new or edited jobs.
create function noonmark_insert_timers(
    job_ids uuid[], shards smallint[], fires timestamptz[], fires_all timestamptz,
    instants timestamptz[], instants_all timestamptz, afters timestamptz[], afters_all timestamptz,
    offsets int[], offsets_all int, counts int[], counts_all int, versions int[], versions_all int,
    lanes smallint[], lanes_all smallint, kinds smallint[], kinds_all smallint, namespaces text[], namespaces_all text,
    pools text[], pools_all text
) returns void language plpgsql as $$
begin
    insert into timers (fire_at, scheduled_for, after_at, job_id, job_version, runs_left, after_offset, shard, lane, kind,
                        namespace, pool)
    select coalesce(u.fire, fires_all), coalesce(u.instant, instants_all), coalesce(u.after, afters_all), u.job_id,
           coalesce(u.version, versions_all), coalesce(u.left_over, counts_all), coalesce(u.shift, offsets_all), u.shard,
           coalesce(u.lane, lanes_all), coalesce(u.kind, kinds_all), coalesce(u.namespace, namespaces_all),
           coalesce(u.pool, pools_all)
    from unnest(job_ids, shards, fires, instants, afters, offsets, counts, versions, lanes, kinds, namespaces, pools)
         as u (job_id, shard, fire, instant, after, shift, left_over, version, lane, kind, namespace, pool);
end
$$;

-- Entries of the audit log.
create function noonmark_insert_audit(
    actors text[], actor_names text[], actions text[], namespaces text[], objects text[], outcomes text[], reasons text[],
    befores text[], afters text[], request_ids text[], addresses text[]
) returns void language plpgsql as $$
begin
    insert into audit_log (actor, actor_name, action, namespace, object, outcome, reason, before, after, request_id, address)
    select u.*
    from (select e.a, e.b, e.c, e.d, e.f, e.g, e.h, e.i::jsonb, e.j::jsonb, e.k, e.l
          from unnest(actors, actor_names, actions, namespaces, objects, outcomes, reasons, befores, afters, request_ids,
                      addresses) as e (a, b, c, d, f, g, h, i, j, k, l)) as u;
end
$$;

-- Stored responses to requests with these keys. Other requests with one of them, in any process, wait until the transaction
-- ends. Keys are locked in one order, so that two batches with the same keys wait instead of deadlocking.
create function noonmark_answers_before(
    namespaces text[], keys text[]
) returns table (of_namespace text, of_key text, of_hash bytea, of_status smallint, of_body jsonb) language plpgsql
set enable_seqscan = off as $$
begin
    perform pg_advisory_xact_lock(ordered.place)
    from (
        select distinct hashtextextended(given.n || '/' || given.k, 7014) as place
        from unnest(namespaces, keys) as given (n, k)
        order by 1
    ) as ordered;
    -- This statement sees what those have committed that were waited for.
    return query
    select given.n, given.k, found.request_hash, found.status, found.body
    from unnest(namespaces, keys) as given (n, k)
         cross join lateral (
             select i.request_hash, i.status, i.body from idempotency as i where i.namespace = given.n and i.key = given.k limit 1
         ) as found;
end
$$;

-- Stores responses, in the transaction that made the changes they report.
create function noonmark_keep_answers(
    namespaces text[], keys text[], hashes bytea[], statuses smallint[], bodies text[]
) returns void language plpgsql as $$
begin
    insert into idempotency (namespace, key, request_hash, status, body)
    select given.n, given.k, given.h, given.s, given.b::jsonb
    from unnest(namespaces, keys, hashes, statuses, bodies) as given (n, k, h, s, b);
end
$$;
