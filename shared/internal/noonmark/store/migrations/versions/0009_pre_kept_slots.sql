-- The slot of a job is held by the run of the last instant of its timer (`after_at`) while that run is unfinished and
-- `holds_slot`: `claim_alike` writes no row in `slots`, which was a quarter of the WAL of such a run. Everything else works with
-- rows in `slots`, as release 0.2 does. These triggers write the row of such a run when something else needs to know of it. A
-- transaction that looks after that itself, as claims do, sets `noonmark.keeps_slots`.

-- Returns the unfinished run that holds the slot of a job without a row, by the last instant of its timer.
create function noonmark_rowless_holder(job uuid, instant timestamptz) returns uuid
    language sql stable as $$
    select id from runs
    where job_id = job and scheduled_for = instant and origin = 'schedule' and request_id = '' and holds_slot
      and finished_at is null
$$;

-- Before a run acquires a slot: refuses it if another run holds it without a row, and writes the row of that run. Claims without
-- a row are for jobs that skip overlaps: locks on the job, which gets no other rule meanwhile, and on its timer keep them away
-- until the commit. What another session has locked now is refused, and callers try again: waiting here could be a deadlock.
create function noonmark_refuse_held_slot() returns trigger
    language plpgsql as $$
declare
    skips boolean;
    instant timestamptz;
    holder uuid;
begin
    select policy ->> 'overlap' = 'skip' into skips from jobs where id = new.key for share skip locked;
    if not found and exists (select from jobs where id = new.key) then
        return null;
    end if;
    if skips then
        perform from timers where job_id = new.key and kind in (1, 3) for share skip locked;
        if not found and exists (select from timers where job_id = new.key and kind in (1, 3)) then
            return null;
        end if;
    end if;
    select after_at into instant from timers where job_id = new.key and kind in (1, 3);
    holder := noonmark_rowless_holder(new.key, instant);
    if holder is null or holder = new.run_id then
        return new;
    end if;
    perform from runs where id = holder and scheduled_for = instant and finished_at is null for share skip locked;
    if found then
        insert into slots (key, slot_no, run_id, taken_at) values (new.key, 0, holder, noonmark_now()) on conflict do nothing;
    end if;
    return null;
end
$$;

-- When a timer no longer says which run holds the slot of its job: writes the row of that run. The run is locked after the timer,
-- as everywhere, so that its outcome either is seen here or deletes the row.
create function noonmark_keep_slot() returns trigger
    language plpgsql as $$
declare
    holder uuid;
begin
    if exists (select from slots where key = old.job_id) then
        return null;
    end if;
    select id into holder from runs
    where id = noonmark_rowless_holder(old.job_id, old.after_at) and scheduled_for = old.after_at and finished_at is null
    for share;
    if found then
        insert into slots (key, slot_no, run_id, taken_at) values (old.job_id, 0, holder, noonmark_now())
        on conflict do nothing;
    end if;
    return null;
end
$$;

-- They see every row and may write, whoever moves a timer or acquires a slot.
do $$
begin
    execute format('alter function noonmark_refuse_held_slot() security definer set search_path = %I, pg_temp',
                   current_schema());
    execute format('alter function noonmark_keep_slot() security definer set search_path = %I, pg_temp', current_schema());
end
$$;

revoke execute on function noonmark_refuse_held_slot(), noonmark_keep_slot() from public;

create trigger slots_refused before insert on slots for each row
    when (current_setting('noonmark.keeps_slots', true) is distinct from 'yes')
    execute function noonmark_refuse_held_slot();
create trigger timers_moved after update of after_at on timers for each row
    when (old.after_at is not null and new.after_at is distinct from old.after_at and old.kind in (1, 3)
          and current_setting('noonmark.keeps_slots', true) is distinct from 'yes')
    execute function noonmark_keep_slot();
create trigger timers_deleted after delete on timers for each row
    when (old.after_at is not null and old.kind in (1, 3)
          and current_setting('noonmark.keeps_slots', true) is distinct from 'yes')
    execute function noonmark_keep_slot();
