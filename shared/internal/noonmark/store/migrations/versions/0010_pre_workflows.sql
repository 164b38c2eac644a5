-- The tasks of workflows, compiled from the documents of their jobs: one set for each version, never changed. Parents have lower
-- numbers than their children. `work` is of the form of `jobs.work`; `graph` is what decides whether and when the task runs;
-- `document` is what people see.
create table workflow_tasks (
    job_id uuid not null,
    version integer not null check (version > 0),
    task_no integer not null check (task_no >= 0),
    key text not null,
    kind text not null,
    handler text,
    lane smallint not null check (lane between 0 and 2),
    pool text not null,
    work json not null,
    graph json not null,
    document json not null,
    primary key (job_id, version, task_no)
);

-- Open workflow runs, and what is known of their tasks: `progress` has a byte for each task, `choices` one for each edge with a
-- condition (`noonmark.core.workflows.progress`). The row is the lock of its run, and is deleted when the run ends.
create table workflows (
    run_id uuid primary key,
    scheduled_for timestamptz not null,
    job_id uuid not null,
    job_version integer not null,
    shard smallint not null,
    generation smallint not null check (generation > 0),
    progress bytea not null,
    choices bytea not null,
    opened_at timestamptz not null,
    held_at timestamptz,
    stopping text check (stopping in ('cancelled', 'deadline'))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
create index workflows_job on workflows (job_id);

-- When the run of a task became due: `scheduled_for` of such a run is the instant of its workflow. Others have none.
alter table runs add column due_at timestamptz;

-- A task or a state is visible if its job is. The API shows both, writes the tasks of the jobs that it creates, and holds runs.
alter table workflow_tasks enable row level security;
alter table workflows enable row level security;
create policy api on workflow_tasks to noonmark_api using (exists (select from jobs where jobs.id = job_id));
create policy api on workflows to noonmark_api using (exists (select from jobs where jobs.id = job_id));
grant select, insert on workflow_tasks to noonmark_api;
grant select, update (held_at) on workflows to noonmark_api;

-- Tasks are deleted with their job, whichever statement deletes it.
create function noonmark_delete_tasks() returns trigger language plpgsql as $$
begin
    delete from workflow_tasks where job_id = old.id;
    return null;
end
$$;
create trigger jobs_tasks_gone after delete on jobs
    for each row when (old.kind = 'workflow' or old.version > 1) execute function noonmark_delete_tasks();

-- As before, and the runs of open workflows.
create or replace function noonmark_live_runs(before uuid, budget integer)
    returns table (run_id uuid, first_at timestamptz, last_at timestamptz)
    language sql stable rows 1000 as $$
    select held.id, first_scheduled_for, last_scheduled_for
    from start_batches, unnest(run_ids) as held (id) where held.id < before
    union all
    select callbacks.run_id, scheduled_for, scheduled_for
    from callbacks where deadline_at is not null and callbacks.run_id < before
    union all
    select workflows.run_id, scheduled_for, scheduled_for from workflows where workflows.run_id < before
    order by 1 desc limit budget
$$;
do $$
begin
    execute format('alter function noonmark_live_runs(uuid, integer) security definer set search_path = %I, pg_temp',
                   current_schema());
end
$$;
