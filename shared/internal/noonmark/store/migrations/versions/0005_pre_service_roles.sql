-- What only the owner of the tables can do, for a trigger that connects as a role of its own (docs/rights.md).

-- Drops one day of the ledger with the rows that depend on its runs. False, and nothing is dropped, if a run of it is not
-- finished, or if it has a summary of skipped instants that extends past the floor. Raises lock_not_available if another
-- transaction uses the day, or reads the ledger for long.
create function noonmark_drop_day(day_table text, first_one_off integer) returns boolean language plpgsql as $$
declare
    kept boolean;
begin
    if not exists (select from pg_inherits where inhparent = 'runs'::regclass and inhrelid = to_regclass(day_table)) then
        raise exception '% is not a day of the ledger', day_table using errcode = 'undefined_table';
    end if;
    perform set_config('lock_timeout', '2s', true);
    -- No run may finish, be redriven or be inserted while the day is checked and dropped.
    execute format('lock table %I in access exclusive mode', day_table);
    execute format('select exists (select from %I where finished_at is null or last_scheduled_for >='
                   ' (select ledger_floor from install))', day_table) into kept;
    if kept then
        return false;
    end if;
    execute format('delete from attempts where run_id in (select id from %I)', day_table);
    execute format('delete from attempt_logs where run_id in (select id from %I)', day_table);
    execute format('delete from run_notes where run_id in (select id from %I)', day_table);
    execute format('delete from dead_letters where run_id in (select id from %I)', day_table);
    -- A finished one-time job is deleted with its run; a recurring job has a unique name and stays.
    execute format('with deleted as (delete from jobs where not unique_name and id in (select job_id from %1$I)'
                   ' and not exists (select from timers where timers.job_id = jobs.id)'
                   ' and not exists (select from runs where runs.job_id = jobs.id'
                   ' and runs.id not in (select id from %1$I)) returning id)'
                   ' delete from job_versions where job_id in (select id from deleted)', day_table);
    -- Versions that were created for one run, from `first_one_off` on, are deleted with it.
    execute format('delete from job_versions where (job_id, version) in'
                   ' (select job_id, job_version from %I where job_version >= %s)', day_table, first_one_off);
    -- The drop locks the whole ledger for a moment, and every claim queues behind a transaction that waits for this lock.
    perform set_config('lock_timeout', '100ms', true);
    execute format('drop table %I', day_table);
    return true;
end
$$;

do $$
begin
    execute format('alter function noonmark_drop_day(text, integer) security definer set search_path = %I, pg_temp', current_schema());
end
$$;
revoke execute on function noonmark_drop_day(text, integer) from public;
