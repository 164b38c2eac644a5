-- The first schema. docs/data-model.md explains the tables.

-- The only clock of the system. It is STABLE, so that it can bound an index scan. Tests replace it.
create function noonmark_now() returns timestamptz
    language sql stable parallel safe
    as 'select statement_timestamp()';

-- UUIDv7 (RFC 9562): keys created together are next to each other in an index. Postgres 18 has a built-in function.
do $$
begin
    if to_regproc('pg_catalog.uuidv7') is not null then
        execute 'create function noonmark_uuid7() returns uuid language sql volatile parallel safe
                 as ''select pg_catalog.uuidv7()''';
    else
        execute 'create function noonmark_uuid7() returns uuid language sql volatile parallel safe as $f$
            select encode(
                set_bit(set_bit(
                    overlay(uuid_send(gen_random_uuid())
                            placing substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
                            from 1 for 6),
                    52, 1), 53, 1),
                ''hex'')::uuid
            $f$';
    end if;
end
$$;

-- Facts of this installation that never change, and how far back the ledger reaches.
create table install (
    only_row boolean primary key default true check (only_row),
    shards smallint not null check (shards between 1 and 1024),
    created_at timestamptz not null default now(),
    ledger_floor timestamptz not null default now() - interval '30 days',
    facts bigint not null default 0,
    -- Signs the cursors of listings, so that every instance of the API can read the cursors of the others.
    cursor_key bytea not null default decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex')
);

-- Credentials of clients. Only the SHA-256 of a secret is stored. A publisher's key also has the secret that signs its
-- events, because a signature can only be checked with that secret.
create table api_keys (
    key_id text primary key,
    name text not null,
    secret_hash bytea not null check (length(secret_hash) = 32),
    signing_secret bytea,
    signs boolean not null generated always as (signing_secret is not null) stored,
    grants jsonb not null default '{}',
    platform boolean not null default false,
    scopes text[],
    rate_per_minute integer,
    created_at timestamptz not null default noonmark_now(),
    created_by text not null,
    expires_at timestamptz,
    last_used_at timestamptz,
    revoked_at timestamptz
) with (fillfactor = 70);

-- Actions through the API or the command line, also refused ones. Rows never change, and are deleted after retention.
create table audit_log (
    id bigint generated always as identity primary key,
    at timestamptz not null default noonmark_now(),
    actor text not null,
    actor_name text not null,
    action text not null,
    namespace text,
    object text,
    outcome text not null check (outcome in ('done', 'denied', 'failed')),
    reason text,
    before jsonb,
    after jsonb,
    request_id text not null,
    address text
);
create index audit_log_namespace on audit_log (namespace, id);
create index audit_log_object on audit_log (object, id) where object is not null;
create index audit_log_at on audit_log using brin (at);

-- Responses to requests with an Idempotency-Key, so that a repeated request gets the same one.
create table idempotency (
    namespace text not null,
    key text not null,
    request_hash bytea not null,
    status smallint not null,
    body jsonb not null,
    made_at timestamptz not null default noonmark_now(),
    primary key (namespace, key)
);
create index idempotency_made_at on idempotency (made_at);

-- Incremented by every change of the facts that schedules are parsed with (default zones, calendars, limits), so that
-- processes notice that their cached facts are outdated.
create function noonmark_facts_changed() returns trigger language plpgsql as $$
begin
    update install set facts = facts + 1;
    return null;
end
$$;

-- Releases of the time zone data that this installation has planned with; exactly one is active.
create table zone_data (
    id smallint generated always as identity primary key,
    version text not null unique,
    active boolean not null default false,
    activated_at timestamptz,
    timers integer,
    moved integer
);
create unique index zone_data_active on zone_data (active) where active;

-- Settings of namespaces for their jobs. A namespace without a row has the defaults.
create table namespaces (
    name text primary key,
    timezone text not null default 'UTC',
    paused_at timestamptz,
    pause_reason text,
    max_in_flight integer check (max_in_flight > 0),
    max_jobs integer check (max_jobs > 0),
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
);
create trigger namespaces_changed after insert or update or delete on namespaces
    for each statement execute function noonmark_facts_changed();

-- Calendars. Their contents are immutable: a job's stored schedule names calendar and digest.
create table calendars (
    namespace text not null,
    name text not null,
    digest text not null,
    updated_at timestamptz not null default now(),
    primary key (namespace, name)
);
create trigger calendars_changed after insert or update or delete on calendars
    for each statement execute function noonmark_facts_changed();

create table calendar_contents (
    digest text primary key,
    body jsonb not null,
    created_at timestamptz not null default now()
);

-- Limits: how many runs of the jobs that name a limit may be in flight, and how many may start in a period.
create table limits (
    namespace text not null,
    name text not null,
    max_running integer check (max_running > 0),
    rate_count integer check (rate_count > 0),
    rate_seconds double precision check (rate_seconds > 0),
    burst integer check (burst > 0),
    updated_at timestamptz not null default now(),
    primary key (namespace, name),
    check (max_running is not null or rate_count is not null),
    check ((rate_count is null) = (rate_seconds is null) and (burst is null or rate_count is not null))
);
create trigger limits_changed after insert or update or delete on limits
    for each statement execute function noonmark_facts_changed();

create table pools (
    name text primary key check (name ~ '^[a-z0-9][a-z0-9_-]{0,47}$'),
    created_at timestamptz not null default now()
);

-- Keys that sign run messages. Several can be valid at once, so that they can be rotated.
create table pool_keys (
    pool text not null references pools (name),
    key_id text not null,
    secret bytea not null check (length(secret) >= 32),
    created_at timestamptz not null default now(),
    retired_at timestamptz,
    primary key (pool, key_id)
);

-- Secrets that sign the calls of a namespace's http jobs (`whsec_` and base64), created at its first call. Several can be
-- valid at once, so that they can be rotated. Workers read them; people can display them.
create table signing_keys (
    namespace text not null,
    key_id text not null,
    secret text not null check (secret like 'whsec\_%'),
    created_at timestamptz not null default now(),
    retired_at timestamptz,
    primary key (namespace, key_id)
);

create table jobs (
    id uuid primary key,
    namespace text not null,
    name text,
    kind text not null,
    handler text,
    lane smallint not null check (lane between 0 and 2),
    pool text not null,
    shard smallint not null,
    schedule jsonb,
    policy jsonb,
    work json not null,
    labels jsonb,
    description text,
    owner text,
    idempotency_key text,
    unique_name boolean not null,
    state text not null check (state in ('active', 'paused', 'completed', 'cancelled', 'broken')),
    state_reason text,
    paused_at timestamptz,
    paused_by text check (paused_by in ('job', 'namespace')),
    resumed_at timestamptz,
    resume_choice text check (resume_choice in ('skip', 'latest', 'all')),
    version integer not null,
    event_sequence bigint,
    created_at timestamptz not null,
    updated_at timestamptz not null
) with (fillfactor = 90);

create unique index jobs_name on jobs (namespace, name) where unique_name and state <> 'cancelled';
create unique index jobs_idempotency_key on jobs (namespace, idempotency_key) where idempotency_key is not null;
-- Indexes that listings walk, the newest first. An index for a field only has rows that set it, so that other jobs cost
-- nothing. The handler has no index, because nearly every job has one, and every create pays for each index.
create index jobs_newest on jobs (namespace, id);
create index jobs_named on jobs (namespace, name, id) where name is not null;
create index jobs_owner on jobs (namespace, owner, id) where owner is not null;
create index jobs_halted on jobs (namespace, state, id) where state <> 'active';

-- The labels of jobs, one per row: a listing by label walks them in order, which an index on `jobs.labels` cannot do.
create table job_labels (
    namespace text not null,
    key text not null,
    value text not null,
    job_id uuid not null,
    primary key (namespace, key, value, job_id)
);

-- Keeps `job_labels` equal to `jobs.labels`, whichever statement writes them; jobs without labels do not call it. A session
-- can keep a plan from when the table was small for long, so the plan must be one for large tables.
create function noonmark_label_job() returns trigger language plpgsql set enable_seqscan = off as $$
begin
    if tg_op <> 'INSERT' and old.labels is not null then
        delete from job_labels using jsonb_each_text(old.labels) as pair
        where namespace = old.namespace and job_labels.key = pair.key and job_labels.value = pair.value and job_id = old.id;
    end if;
    if tg_op <> 'DELETE' and new.labels is not null then
        insert into job_labels (namespace, key, value, job_id)
        select new.namespace, pair.key, pair.value, new.id from jsonb_each_text(new.labels) as pair;
    end if;
    return null;
end
$$;
create trigger jobs_labels_made after insert on jobs
    for each row when (new.labels is not null) execute function noonmark_label_job();
create trigger jobs_labels_changed after update of labels on jobs
    for each row when (old.labels is distinct from new.labels) execute function noonmark_label_job();
create trigger jobs_labels_gone after delete on jobs
    for each row when (old.labels is not null) execute function noonmark_label_job();

-- Versions of jobs before edits: a run pins the version it was planned with. Versions from 1,000,000,000 on belong to one
-- run each, which has its own payload.
create table job_versions (
    job_id uuid not null,
    version integer not null,
    name text,
    kind text not null,
    handler text,
    lane smallint,
    pool text,
    work json not null,
    schedule jsonb,
    policy jsonb,
    labels jsonb,
    description text,
    owner text,
    replaced_at timestamptz not null default now(),
    primary key (job_id, version)
);

-- A cancel or delete of a job that is not known yet: an older create must not revive it.
create table tombstones (
    namespace text not null,
    name text not null,
    event_sequence bigint not null,
    made_at timestamptz not null default now(),
    primary key (namespace, name)
);

-- Everything due later. The table is narrow on purpose: a claim deletes or moves these rows and does not touch `jobs`.
-- `after_at` and its offset from UTC in seconds are the last settled instant, from which the next one is computed
-- again when zone data or a calendar change. If `scheduled_for` equals `after_at`, the timer is only that position,
-- and its instant must be planned first.
create table timers (
    fire_at timestamptz not null,
    scheduled_for timestamptz not null,
    after_at timestamptz,
    job_id uuid not null,
    run_id uuid,
    job_version integer not null,
    runs_left integer,
    after_offset integer,
    shard smallint not null,
    lane smallint not null,
    kind smallint not null,
    namespace text not null,
    pool text not null
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0,
        autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_analyze_scale_factor = 0.05, vacuum_truncate = off);

create index timers_due on timers (shard, lane, kind, fire_at);
create index timers_job on timers (job_id);

-- The ledger: one row per due instant of a job, whatever its outcome.
create table runs (
    id uuid not null,
    scheduled_for timestamptz not null,
    queued_at timestamptz,
    started_at timestamptz,
    finished_at timestamptz,
    start_by timestamptz,
    last_scheduled_for timestamptz,
    job_id uuid not null,
    owner bigint,
    job_version integer not null,
    epoch integer,
    fence integer not null,
    attempt integer not null default 0,
    instants integer not null default 1,
    lane smallint not null,
    shard smallint not null,
    losses smallint not null default 0,
    zone_data smallint,
    holds_slot boolean not null default false,
    state text not null,
    reason text,
    origin text not null,
    request_id text not null default '',
    namespace text not null,
    pool text not null,
    result json,
    error text,
    primary key (id, scheduled_for),
    unique (job_id, scheduled_for, origin, request_id),
    constraint runs_state check (state in ('waiting', 'queued', 'running', 'retrying', 'cancelling', 'succeeded',
                                           'skipped', 'cancelled', 'unknown', 'dead', 'discarded')),
    constraint runs_live_has_owner check (state not in ('running', 'cancelling')
                                          or (owner is not null and started_at is not null)),
    constraint runs_end_is_dated check ((finished_at is not null) = (state in ('succeeded', 'skipped', 'cancelled',
                                                                               'unknown', 'dead', 'discarded')))
) partition by range (scheduled_for);

-- Creates the ledger's partition of a day. ATTACH takes a weaker lock than CREATE ... PARTITION OF, so claims and
-- outcomes continue. The advisory lock serializes callers for the same day. Returns whether it was created.
create function noonmark_make_day(day date) returns boolean
    language plpgsql as $$
declare
    name text := 'runs_' || to_char(day, 'YYYYMMDD');
    lower_bound timestamptz := day::timestamp at time zone 'UTC';
    upper_bound timestamptz := (day + 1)::timestamp at time zone 'UTC';
begin
    if to_regclass(name) is not null then
        return false;
    end if;
    perform pg_advisory_xact_lock(hashtext('noonmark_make_day'));
    if to_regclass(name) is not null then
        return false;
    end if;
    execute format(
        'create table %I (like runs including defaults including constraints)
         with (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0,
               autovacuum_vacuum_insert_scale_factor = 0.2, vacuum_truncate = off)', name);
    execute format('alter table runs attach partition %I for values from (%L) to (%L)', name, lower_bound, upper_bound);
    return true;
end
$$;

-- One row per worker process. The lease belongs to the worker, not to the run.
create table workers (
    id bigint generated always as identity primary key,
    pool text not null,
    host text not null,
    pid integer not null,
    epoch integer not null default 1,
    lease_seconds double precision not null,
    started_at timestamptz not null default now(),
    beat_at timestamptz not null,
    lapsed_at timestamptz,
    left_at timestamptz,
    catalogue jsonb not null default '{}'
) with (fillfactor = 50);

-- One row per start statement, by which the live runs of a worker are found without an index on `state`.
create table start_batches (
    id bigint generated always as identity primary key,
    worker bigint not null,
    epoch integer not null,
    first_scheduled_for timestamptz not null,
    last_scheduled_for timestamptz not null,
    started_at timestamptz not null,
    overdue_at timestamptz not null,
    run_ids uuid[] not null
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
alter table start_batches alter column run_ids set storage external;
create index start_batches_worker on start_batches (worker);

-- Backfills: ranges of past instants to run, planned step by step. Schedule, pool and version of the job are those of
-- the request, and a later edit does not change them. `next_at` is the first instant that is not planned yet; every
-- run of the backfill before `ended_to` has finished.
create table backfills (
    id uuid primary key,
    job_id uuid not null,
    namespace text not null,
    pool text not null,
    shard smallint not null,
    job_version integer not null,
    schedule jsonb not null,
    mode text not null check (mode in ('missing', 'missing_and_failed', 'all')),
    from_at timestamptz not null,
    until_at timestamptz not null,
    next_at timestamptz,
    ended_to timestamptz not null,
    state text not null check (state in ('running', 'done', 'cancelled', 'failed')),
    state_reason text,
    total integer not null,
    instants integer not null default 0,
    queued integer not null default 0,
    requested_by text,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    finished_at timestamptz
);
create index backfills_running on backfills (shard) where state = 'running';
create index backfills_job on backfills (job_id);

-- Overlap slots, by the id of the job: acquired when a run is queued, kept through retries, released when it is settled.
create table slots (
    key uuid not null,
    slot_no smallint not null,
    run_id uuid not null,
    taken_at timestamptz not null,
    primary key (key, slot_no)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

-- Slots of limits and caps, by a hash of their key: acquired and released like overlap slots.
create table limit_slots (
    key uuid not null,
    slot_no integer not null,
    run_id uuid not null,
    namespace text not null,
    limit_name text,
    primary key (key, slot_no)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
create index limit_slots_run on limit_slots (run_id);

-- Token buckets of rate limits. A bucket without a row is full.
create table buckets (
    key uuid primary key,
    tokens double precision not null,
    filled_at timestamptz not null
) with (fillfactor = 50);

-- Runs that wait, and why; by this table they are found without an index on `runs.state`. Runs that only need a slot have
-- `key`, which is their wait queue, and what their promotion needs; limit and its key are for people.
create table waits (
    run_id uuid primary key,
    scheduled_for timestamptz not null,
    job_id uuid not null,
    reason text not null,
    since timestamptz not null,
    key uuid,
    lane smallint,
    namespace text,
    limit_name text,
    limit_key text,
    start_by timestamptz
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
create index waits_job on waits (job_id);
create index waits_line on waits (key, lane, since) where key is not null;
create index waits_start_by on waits (start_by) where key is not null and start_by is not null;

-- Attempts that their target will report on later. A row is written before the request is sent. With the answer 202 it
-- gets its deadline, and the run no longer has a worker. Only the SHA-256 of the token is stored.
create table callbacks (
    run_id uuid primary key,
    scheduled_for timestamptz not null,
    job_id uuid not null,
    fence integer not null,
    worker bigint not null,
    token_hash bytea not null check (length(token_hash) = 32),
    opened_at timestamptz not null,
    deadline_at timestamptz
);

-- Failed, timed-out, lost and handed-back attempts. The run itself records a success.
create table attempts (
    run_id uuid not null,
    scheduled_for timestamptz not null,
    fence integer not null,
    attempt integer not null,
    worker bigint,
    outcome text not null,
    error text,
    started_at timestamptz,
    finished_at timestamptz not null,
    primary key (run_id, fence)
);

-- The output and log of attempts that wrote any.
create table attempt_logs (
    run_id uuid not null,
    scheduled_for timestamptz not null,
    fence integer not null,
    attempt integer not null,
    stdout text not null,
    stderr text not null,
    log text not null,
    dropped bigint not null,
    written_at timestamptz not null,
    primary key (run_id, fence)
);

-- Progress of runs that report it, and the checkpoint from which the next attempt can continue.
create table run_notes (
    run_id uuid primary key,
    scheduled_for timestamptz not null,
    fence integer not null,
    progress double precision,
    message text not null,
    checkpoint json,
    written_at timestamptz not null
) with (fillfactor = 70);

create table dead_letters (
    run_id uuid primary key,
    scheduled_for timestamptz not null,
    job_id uuid not null,
    namespace text not null,
    attempts integer not null,
    reason text not null,
    error text,
    kind text,
    name text,
    fingerprint text not null,
    died_at timestamptz not null
);
create index dead_letters_died on dead_letters (died_at);
create index dead_letters_job on dead_letters (job_id);
create index dead_letters_namespace on dead_letters (namespace, died_at, run_id);
create index dead_letters_run on dead_letters (namespace, run_id);
create index dead_letters_cause on dead_letters (namespace, fingerprint, died_at, run_id);

-- How far down a page of a listing of runs may read: the lowest id of a window of runs of all namespaces below `before`,
-- including those of the same millisecond. It reveals nothing about these runs except when the last one was created.
create function noonmark_runs_floor(before uuid, first_day timestamptz, end_day timestamptz, budget integer) returns uuid
    language plpgsql stable as $$
declare
    last uuid;
begin
    -- Planned with its values: the day's tables that cannot hold any of it are left out.
    execute 'select id from runs where id < $1 and scheduled_for >= $2 and scheduled_for < $3
             order by id desc offset $4 - 1 limit 1'
        into last using before, first_day, end_day, budget;
    return left(last::text, 13) || '-0000-0000-000000000000';
end
$$;

-- The same for runs that wait.
create function noonmark_waits_floor(before uuid, budget integer) returns uuid
    language sql stable as $$
    select (left(run_id::text, 13) || '-0000-0000-000000000000')::uuid
    from waits where run_id < before order by run_id desc offset budget - 1 limit 1
$$;

-- Runs of all namespaces that may be in flight, the newest first: owned by workers, or waiting for a target's report.
create function noonmark_live_runs(before uuid, budget integer)
    returns table (run_id uuid, first_at timestamptz, last_at timestamptz)
    language sql stable rows 1000 as $$
    select held.id, first_scheduled_for, last_scheduled_for
    from start_batches, unnest(run_ids) as held (id) where held.id < before
    union all
    select callbacks.run_id, scheduled_for, scheduled_for
    from callbacks where deadline_at is not null and callbacks.run_id < before
    order by 1 desc limit budget
$$;

-- The maximum number of started runs of each worker.
create function noonmark_worker_load() returns table (worker bigint, runs bigint)
    language sql stable rows 1000 as $$
    select worker, sum(cardinality(run_ids))::bigint from start_batches group by worker
$$;

-- Ids of accepted events: a redelivered submission is a duplicate, not a second job.
create table inbox (
    event_key uuid primary key,
    received_at timestamptz not null,
    source text not null,
    event_id text not null
);
create index inbox_received on inbox using brin (received_at);

create table rejections (
    id bigint generated always as identity primary key,
    topic text not null,
    partition integer not null,
    record_offset bigint not null,
    event_source text,
    event_id text,
    reason text not null,
    errors jsonb not null,
    value bytea,
    truncated boolean not null,
    received_at timestamptz not null,
    unique (topic, partition, record_offset)
);

-- The outbox: messages to send to Kafka. A row with a run is a run message; any other has its own value. Lanes 0 to 2
-- are runs, 3 are events, 4 are events that Kafka has refused.
create table outbox (
    seq bigint generated always as identity,
    slice smallint not null,
    lane smallint not null,
    created_at timestamptz not null,
    run_id uuid,
    job_id uuid,
    scheduled_for timestamptz,
    fence integer,
    job_version integer,
    namespace text,
    pool text,
    topic text,
    key bytea,
    value bytea,
    headers bytea,
    refusal text,
    primary key (slice, lane, seq),
    check ((run_id is not null) <> (value is not null))
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0,
        autovacuum_vacuum_insert_scale_factor = 0.2, vacuum_truncate = off);

-- Live triggers and dispatchers; shards and slices are distributed among them.
create table members (
    role text not null,
    id uuid not null,
    host text not null,
    pid integer not null,
    joined_at timestamptz not null,
    beat_at timestamptz not null,
    primary key (role, id)
) with (fillfactor = 50);

-- Since when this primary has received heartbeats without a gap. No lease expires before a full lease of that time.
create table lease_watch (
    only_row boolean primary key default true check (only_row),
    timeline integer not null,
    postmaster_started_at timestamptz not null,
    last_pass_at timestamptz not null,
    continuous_since timestamptz not null
);

-- Up to when a topic's consumer group has passed every acknowledged run message.
create table topic_progress (
    topic text primary key,
    passed_until timestamptz not null,
    measured_at timestamptz not null,
    lost_at timestamptz
);
