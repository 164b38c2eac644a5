-- Permissions and row policies of the API: docs/security.md. Every other service connects as the owner, to whom policies
-- do not apply. The role must exist before this runs (shared/internal/noonmark/store/migrations/api_role.py).

-- The namespaces of the transaction, which `enter_scope` sets. If it is unset, or empty after a transaction that had set
-- it, there are none.
create function noonmark_everywhere() returns boolean language sql stable parallel safe
    as $$ select coalesce(current_setting('noonmark.namespaces', true), '') = '*' $$;

create function noonmark_namespaces() returns text[] language sql stable parallel safe
    as $$ select case when coalesce(current_setting('noonmark.namespaces', true), '') in ('', '*') then '{}'::text[]
                      else current_setting('noonmark.namespaces')::text[] end $$;

-- Some functions do what the API's role may not do, for statements that it may run. The functions of listings read rows of
-- other namespaces to find how far a page reads, and ids that the policies then filter. Their search path is fixed to the
-- schema of the tables, so that a temporary table cannot replace one of them.
do $$
begin
    execute format('alter function noonmark_facts_changed() security definer set search_path = pg_catalog, %I, pg_temp',
                   current_schema());
    execute format('alter function noonmark_make_day(date) security definer set search_path = %I, pg_temp',
                   current_schema());
    execute format('alter function noonmark_runs_floor(uuid, timestamptz, timestamptz, integer) security definer
                    set search_path = %I, pg_temp', current_schema());
    execute format('alter function noonmark_waits_floor(uuid, integer) security definer set search_path = %I, pg_temp',
                   current_schema());
    execute format('alter function noonmark_live_runs(uuid, integer) security definer set search_path = %I, pg_temp',
                   current_schema());
    execute format('alter function noonmark_worker_load() security definer set search_path = %I, pg_temp',
                   current_schema());
    execute format('grant usage on schema %I to noonmark_api', current_schema());
end
$$;
revoke execute on function noonmark_make_day(date), noonmark_facts_changed() from public;
grant execute on function noonmark_make_day(date) to noonmark_api;
revoke execute on function noonmark_runs_floor(uuid, timestamptz, timestamptz, integer), noonmark_waits_floor(uuid, integer),
    noonmark_live_runs(uuid, integer), noonmark_worker_load() from public;
grant execute on function noonmark_runs_floor(uuid, timestamptz, timestamptz, integer), noonmark_waits_floor(uuid, integer),
    noonmark_live_runs(uuid, integer), noonmark_worker_load() to noonmark_api;

-- The audit log is append-only. Housekeeping marks its own transaction as one that prunes.
create function noonmark_audit_is_kept() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and current_setting('noonmark.prunes_audit', true) = 'yes' then
        return null;
    end if;
    raise exception 'the audit log is only added to: % is refused', lower(tg_op)
        using errcode = 'restrict_violation', hint = 'Entries go after NOONMARK_AUDIT_DAYS.';
end
$$;
create trigger audit_log_is_kept before update or delete or truncate on audit_log
    for each statement execute function noonmark_audit_is_kept();

-- Rows with a namespace. The subqueries are evaluated once per statement, not once per row.
do $$
declare
    name text;
    place text;
    mine constant text := '(select noonmark_everywhere()) or %s = any ((select noonmark_namespaces())::text[])';
begin
    for name, place in values
        ('namespaces', 'name'), ('limits', 'namespace'), ('calendars', 'namespace'), ('signing_keys', 'namespace'),
        ('idempotency', 'namespace'), ('audit_log', 'namespace'), ('jobs', 'namespace'), ('tombstones', 'namespace'),
        ('timers', 'namespace'), ('runs', 'namespace'), ('backfills', 'namespace'), ('limit_slots', 'namespace'),
        ('dead_letters', 'namespace'), ('job_labels', 'namespace')
    loop
        execute format('create policy api on %I to noonmark_api using (' || mine || ')', name, place);
    end loop;
    -- What belongs to the installation, and what names no namespace: for those who see everything.
    foreach name in array array['rejections', 'inbox', 'start_batches']
    loop
        execute format('create policy api on %I to noonmark_api using ((select noonmark_everywhere()))', name);
    end loop;
    -- Shared by all tenants, without secrets.
    foreach name in array array['install', 'zone_data', 'pools', 'workers', 'members', 'lease_watch', 'topic_progress']
    loop
        execute format('create policy api on %I for select to noonmark_api using (true)', name);
    end loop;
    for name in select tablename from pg_tables
        where schemaname = current_schema() and tablename <> 'alembic_version' and tablename !~ '^runs_[0-9]'
    loop
        execute format('alter table %I enable row level security', name);
    end loop;
end
$$;

-- Rows without a namespace are visible if their job or run is, by its own policy.
create policy api on job_versions to noonmark_api using (exists (select from jobs where jobs.id = job_id));
create policy api on slots to noonmark_api using (exists (select from jobs where jobs.id = key));
create policy api on callbacks to noonmark_api using (exists (select from jobs where jobs.id = job_id));
create policy api on attempts to noonmark_api using (exists (
    select from runs where runs.id = attempts.run_id and runs.scheduled_for = attempts.scheduled_for));
create policy api on attempt_logs to noonmark_api using (exists (
    select from runs where runs.id = attempt_logs.run_id and runs.scheduled_for = attempt_logs.scheduled_for));
create policy api on run_notes to noonmark_api using (exists (
    select from runs where runs.id = run_notes.run_id and runs.scheduled_for = run_notes.scheduled_for));
create policy api on waits to noonmark_api using (
    case when namespace is null then exists (select from jobs where jobs.id = job_id)
         else (select noonmark_everywhere()) or namespace = any ((select noonmark_namespaces())::text[]) end);
create policy api on buckets for select to noonmark_api using (
    (select noonmark_everywhere()) or exists (select from waits where waits.key = buckets.key));
create policy api on calendar_contents for select to noonmark_api using (
    (select noonmark_everywhere()) or exists (select from calendars where calendars.digest = calendar_contents.digest));
-- Written before the calendar that names them; their key is the digest of their contents.
create policy api_writes on calendar_contents for insert to noonmark_api with check (true);
-- Events have no namespace: they can be written but not read.
create policy api on outbox to noonmark_api
    using ((select noonmark_everywhere()) or namespace = any ((select noonmark_namespaces())::text[]))
    with check ((select noonmark_everywhere()) or namespace is null
                or namespace = any ((select noonmark_namespaces())::text[]));
-- A key is visible to each namespace that it has a grant in. Creating or revoking it needs all of these namespaces.
create policy api_reads on api_keys for select to noonmark_api using (
    (select noonmark_everywhere()) or (not platform and grants ?| (select noonmark_namespaces())));
create policy api_makes on api_keys for insert to noonmark_api with check (
    (select noonmark_everywhere()) or (not platform and grants - (select noonmark_namespaces()) = '{}'));
create policy api_ends on api_keys for update to noonmark_api using (
    (select noonmark_everywhere()) or (not platform and grants - (select noonmark_namespaces()) = '{}'));

-- Only the grants that the API needs. Partitions of the ledger have no grants: they are reached through `runs`.
grant select (only_row, shards, created_at, ledger_floor, facts) on install to noonmark_api;
grant select on zone_data, pools, workers, members, lease_watch, topic_progress, buckets, rejections, attempt_logs,
    run_notes, start_batches to noonmark_api;
grant select, insert on audit_log, calendar_contents, job_versions, attempts, idempotency, inbox to noonmark_api;
grant select, insert, update on jobs, runs, backfills, tombstones to noonmark_api;
grant select, insert, delete on slots, outbox, dead_letters, job_labels to noonmark_api;
grant select, delete on limit_slots, callbacks to noonmark_api;
grant select, insert, update, delete on namespaces, limits, calendars, timers, waits to noonmark_api;
grant select (key_id, name, signs, grants, platform, scopes, rate_per_minute, created_at, created_by, expires_at,
              last_used_at, revoked_at),
      insert (key_id, name, secret_hash, signing_secret, grants, platform, scopes, rate_per_minute, created_by, expires_at),
      update (revoked_at) on api_keys to noonmark_api;
