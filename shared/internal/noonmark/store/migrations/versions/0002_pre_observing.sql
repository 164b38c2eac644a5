-- Alerts, from when a problem was first found until it was over. At most one alert is open for a fingerprint.
create table alerts (
    id uuid primary key default noonmark_uuid7(),
    fingerprint text not null,
    kind text not null,
    severity text not null,
    namespace text,
    job_id uuid,
    run_id uuid,
    summary text not null,
    details jsonb not null default '{}',
    raised_at timestamptz not null,
    seen_at timestamptz not null,
    resolved_at timestamptz
);
create unique index alerts_open on alerts (fingerprint) where resolved_at is null;
create index alerts_listed on alerts (raised_at, id);
create index alerts_namespace on alerts (namespace, raised_at, id);
create index alerts_job on alerts (job_id, raised_at) where job_id is not null;

-- Deliveries, one row for each change of an alert and channel. `due_at` is infinity if nothing is left to do: the delivery
-- was sent, or abandoned (`sent_at` is null).
create table alert_deliveries (
    alert_id uuid not null,
    change text not null,
    channel text not null,
    attempts integer not null default 0,
    due_at timestamptz not null,
    last_error text,
    sent_at timestamptz,
    primary key (alert_id, change, channel)
);
create index alert_deliveries_due on alert_deliveries (channel, due_at);

-- Offsets of the outcomes of runs: written together with the statistics, so that each outcome counts once. The group's
-- offsets in Kafka are not used.
create table observer_offsets (
    topic text not null,
    partition integer not null,
    next_offset bigint not null,
    caught_up boolean not null,
    read_at timestamptz not null,
    primary key (topic, partition)
) with (fillfactor = 50);

-- Recently read events: the relay sends an event again if it crashed before it recorded the acknowledgement.
create table observer_events (
    event_id uuid primary key,
    read_at timestamptz not null
);
create index observer_events_read on observer_events using brin (read_at);

-- Statistics of recurring jobs, and the outcomes of their last attempts. One-time jobs have no separate history.
create table job_stats (
    job_id uuid primary key,
    namespace text not null,
    kind text not null,
    runs bigint not null,
    usual_seconds double precision,
    failures integer not null,
    failure_cause text,
    last_error text,
    last_run_id uuid,
    last_failure_at timestamptz,
    last_success_at timestamptz
) with (fillfactor = 50);
create index job_stats_failing on job_stats (failures) where failures >= 2;

-- Outcomes by time window: for each recurring job, and for all one-time jobs of a kind, with a `job_id` of zeros.
create table outcome_windows (
    window_at timestamptz not null,
    job_id uuid not null,
    namespace text not null,
    kind text not null,
    succeeded integer not null,
    failed integer not null,
    dead integer not null,
    skipped integer not null,
    other integer not null,
    seconds_buckets integer[] not null,
    primary key (job_id, window_at, namespace, kind)
) with (fillfactor = 50);
create index outcome_windows_at on outcome_windows (window_at);

-- The observer's positions in the ledger and in the dead letters.
create table observer_state (
    only_row boolean primary key default true check (only_row),
    heard_at timestamptz not null,
    walked_to uuid not null,
    ruled_to uuid not null,
    died_until timestamptz not null
) with (fillfactor = 50);

-- For reading dead letters cause by cause.
create index dead_letters_job_cause on dead_letters (job_id, fingerprint, died_at, run_id);

-- The lowest UUIDv7 of a moment: everything created before has a lower id.
create function noonmark_first_id(made_at timestamptz) returns uuid language sql immutable parallel safe
    as $$ select (lpad(to_hex((extract(epoch from made_at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid $$;

-- Runs of the last days in the order of their creation. Planned for a large ledger, whatever its statistics say.
create function noonmark_runs_made(after uuid, before uuid, budget integer)
    returns table (id uuid, scheduled_for timestamptz, job_id uuid, namespace text, pool text, state text, reason text,
                   started_at timestamptz, origin text)
    language sql stable rows 1000
    set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off as $$
    select id, scheduled_for, job_id, namespace, pool, state, reason, started_at, origin
    from runs
    where runs.id > after and runs.id < before
      and scheduled_for between noonmark_now() - interval '2 days' and noonmark_now() + interval '1 day'
    order by runs.id limit budget
$$;

-- Runs that are late and have not started; for jobs with their own rule, runs that may be late.
create table late_runs (
    run_id uuid primary key,
    scheduled_for timestamptz not null,
    job_id uuid not null,
    namespace text not null,
    pool text not null,
    recurring boolean not null
);
create index late_runs_job on late_runs (job_id, scheduled_for);

-- Jobs with their own `late_after_seconds`, kept equal to `jobs.policy`, whichever statement writes it.
create table late_rules (
    job_id uuid primary key,
    late_after_seconds double precision not null
);
create function noonmark_late_rule() returns trigger language plpgsql set enable_seqscan = off as $$
begin
    if tg_op <> 'INSERT' then
        delete from late_rules where job_id = old.id;
    end if;
    if tg_op <> 'DELETE' then
        insert into late_rules (job_id, late_after_seconds)
        select new.id, (new.policy ->> 'late_after_seconds')::float8 where new.policy ? 'late_after_seconds';
    end if;
    return null;
end
$$;
create trigger jobs_late_made after insert on jobs
    for each row when (new.policy ? 'late_after_seconds') execute function noonmark_late_rule();
create trigger jobs_late_changed after update of policy on jobs
    for each row when (old.policy is distinct from new.policy) execute function noonmark_late_rule();
create trigger jobs_late_gone after delete on jobs
    for each row when (old.policy ? 'late_after_seconds') execute function noonmark_late_rule();

alter table alerts enable row level security;
alter table alert_deliveries enable row level security;
create policy api on alerts to noonmark_api using (
    (select noonmark_everywhere()) or namespace = any ((select noonmark_namespaces())::text[]));
create policy api on alert_deliveries for select to noonmark_api using (
    exists (select from alerts where alerts.id = alert_id));
grant select on alerts, alert_deliveries to noonmark_api;

-- When all loops of a process last completed a round, and when it last reported; the watchdog reads this.
create table process_progress (
    service text not null,
    id uuid not null,
    host text not null,
    pid integer not null,
    seen_at timestamptz not null,
    progressed_at timestamptz not null,
    stuck text,
    primary key (service, id)
) with (fillfactor = 50);
alter table process_progress enable row level security;
create policy api on process_progress for select to noonmark_api using (true);
grant select on process_progress to noonmark_api;

-- How many runs a worker executes at once, and since when it drains; the previous release writes neither.
alter table workers add column slots integer, add column draining_at timestamptz;

alter table observer_offsets enable row level security;
alter table observer_events enable row level security;
alter table observer_state enable row level security;
alter table late_runs enable row level security;
alter table job_stats enable row level security;
alter table outcome_windows enable row level security;
alter table late_rules enable row level security;
create policy api on job_stats for select to noonmark_api using (
    (select noonmark_everywhere()) or namespace = any ((select noonmark_namespaces())::text[]));
create policy api on outcome_windows for select to noonmark_api using (
    (select noonmark_everywhere()) or namespace = any ((select noonmark_namespaces())::text[]));
-- The trigger function writes them for every statement that writes a job.
create policy api on late_rules to noonmark_api using (exists (select from jobs where jobs.id = job_id));
grant select on job_stats, outcome_windows to noonmark_api;
grant select, insert, delete on late_rules to noonmark_api;

-- The client's trace that a one-time job belongs to, as W3C `traceparent`; null for nearly all jobs.
alter table jobs add column traceparent text;
