-- Creates jobs that conflict with no other and whose rules need no look-up, with their timers, the runs and messages of those
-- that are due on arrival, their audit entries and stored responses: one statement, because each further one costs a batch of
-- a few jobs as much as the rows. A conflict fails it. A column with equal values is passed as one value. The statements that
-- restrict and check the transaction run before it, in the same function (`PLANNED_TOGETHER`).
with given as materialized (
    select u.id, u.shard, coalesce(u.namespace, %(job_namespaces_all)s::text) as namespace,
           coalesce(u.name, %(names_all)s::text) as name,
           coalesce(u.kind, %(kinds_all)s::text) as kind, coalesce(u.handler, %(handlers_all)s::text) as handler,
           coalesce(u.lane, %(lanes_all)s::smallint) as lane, coalesce(u.pool, %(pools_all)s::text) as pool,
           coalesce(u.schedule, %(schedules_all)s::text) as schedule, coalesce(u.policy, %(policies_all)s::text) as policy,
           coalesce(u.work, %(works_all)s::text) as work, coalesce(u.label_set, %(labels_all)s::text) as label_set,
           coalesce(u.description, %(descriptions_all)s::text) as description, coalesce(u.owner, %(owners_all)s::text) as owner,
           coalesce(u.idempotency_key, %(idempotency_keys_all)s::text) as idempotency_key,
           coalesce(u.unique_name, %(unique_names_all)s::bool) as unique_name, coalesce(u.state, %(states_all)s::text) as state,
           coalesce(u.fire_at, %(fire_at_all)s::timestamptz) as fire_at,
           coalesce(u.scheduled_for, %(scheduled_for_all)s::timestamptz) as scheduled_for,
           coalesce(u.after_at, %(after_at_all)s::timestamptz) as after_at,
           coalesce(u.after_offset, %(after_offset_all)s::int) as after_offset,
           coalesce(u.runs_left, %(runs_left_all)s::int) as runs_left,
           coalesce(u.timer_kind, %(timer_kinds_all)s::smallint) as timer_kind,
           u.run_id, coalesce(u.start_by, %(start_by_all)s::timestamptz) as start_by,
           coalesce(u.actor, %(actors_all)s::text) as actor, coalesce(u.actor_name, %(actor_names_all)s::text) as actor_name,
           coalesce(u.action, %(actions_all)s::text) as action,
           coalesce(u.request_id, %(request_ids_all)s::text) as request_id,
           coalesce(u.address, %(addresses_all)s::text) as address,
           u.key, u.request_hash, u.response
    from unnest(%(ids)b::uuid[], %(shards)b::smallint[], %(job_namespaces)b::text[], %(names)b::text[], %(kinds)b::text[],
                %(handlers)b::text[], %(lanes)b::smallint[], %(pools)b::text[], %(schedules)b::text[], %(policies)b::text[],
                %(works)b::text[], %(labels)b::text[], %(descriptions)b::text[], %(owners)b::text[],
                %(idempotency_keys)b::text[], %(unique_names)b::bool[], %(states)b::text[], %(fire_at)b::timestamptz[],
                %(scheduled_for)b::timestamptz[], %(after_at)b::timestamptz[], %(after_offset)b::int[],
                %(runs_left)b::int[], %(timer_kinds)b::smallint[], %(run_ids)b::uuid[], %(start_by)b::timestamptz[],
                %(actors)b::text[], %(actor_names)b::text[], %(actions)b::text[], %(request_ids)b::text[],
                %(addresses)b::text[], %(keys)b::text[], %(request_hashes)b::bytea[], %(responses)b::text[])
         as u (id, shard, namespace, name, kind, handler, lane, pool, schedule, policy, work, label_set, description, owner,
               idempotency_key, unique_name, state, fire_at, scheduled_for, after_at, after_offset, runs_left, timer_kind,
               run_id, start_by, actor, actor_name, action, request_id, address, key, request_hash, response)
), created as (
    insert into jobs (id, namespace, name, kind, handler, lane, pool, shard, schedule, policy, work, labels, description, owner,
                      idempotency_key, unique_name, state, paused_at, paused_by, version, created_at, updated_at)
    select id, namespace, name, kind, handler, lane, pool, shard, schedule::jsonb, policy::jsonb, work::json, label_set::jsonb,
           description, owner, idempotency_key, unique_name, state, case when state = 'paused' then %(now)s::timestamptz end,
           case when state = 'paused' then 'namespace' end, 1, %(now)s::timestamptz, %(now)s::timestamptz
    from given
), timed as (
    insert into timers (fire_at, scheduled_for, after_at, job_id, job_version, runs_left, after_offset, shard, lane, kind,
                        namespace, pool)
    select fire_at, scheduled_for, after_at, id, 1, runs_left, after_offset, shard, lane, timer_kind, namespace, pool
    from given
    where fire_at is not null
), begun as (
    insert into runs (id, scheduled_for, queued_at, start_by, job_id, job_version, fence, lane, shard, zone_data, state, origin,
                      namespace, pool)
    select run_id, %(now)s::timestamptz, %(now)s::timestamptz, start_by, id, 1, 1, lane, shard,
           (select zone_data.id from zone_data where active), 'queued', 'schedule', namespace, pool
    from given
    where run_id is not null
), queued as (
    insert into outbox (slice, lane, created_at, run_id, job_id, scheduled_for, fence, job_version, namespace, pool)
    select shard, lane, %(now)s::timestamptz, run_id, id, %(now)s::timestamptz, 1, 1, namespace, pool
    from given
    where run_id is not null
), audited as (
    insert into audit_log (actor, actor_name, action, namespace, object, outcome, after, request_id, address)
    select actor, actor_name, action, namespace, 'job:' || id, 'done',
           jsonb_build_object('type', kind, 'id', id, 'namespace', namespace, 'name', name, 'version', 1, 'created', true),
           request_id, address
    from given
), kept as (
    insert into idempotency (namespace, key, request_hash, status, body)
    select namespace, key, request_hash, 202, response::jsonb from given where key is not null
)
select true
