-- Something that is wrong, from when it was first seen until it was over. At most one is open for a fingerprint.
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

-- What is still to be told, one row for a change of an alert and a channel; gone when it was told.
create table alert_deliveries (
    alert_id uuid not null,
    change text not null,
    channel text not null,
    attempts integer not null default 0,
    due_at timestamptz not null,
    last_error text,
    primary key (alert_id, change, channel)
);
create index alert_deliveries_due on alert_deliveries (channel, due_at);

alter table alerts enable row level security;
alter table alert_deliveries enable row level security;
create policy api on alerts to noonmark_api using (
    (select noonmark_everywhere()) or namespace = any ((select noonmark_namespaces())::text[]));
create policy api on alert_deliveries for select to noonmark_api using (
    exists (select from alerts where alerts.id = alert_id));
grant select on alerts, alert_deliveries to noonmark_api;
