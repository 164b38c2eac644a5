-- Makes the locked runs of paused jobs wait. The fence rises, so messages in flight are refused, and outbox rows are
-- deleted, because a waiting run has none. A run that waits already only changes its reason and leaves its wait queue. Slots of
-- limits become free: runs of other jobs may need them during the pause. The overlap slot stays, because the run is unfinished.
with paused as (
    update runs
    set state = 'waiting', reason = 'paused', fence = fence + 1, owner = null, epoch = null,
        holds_slot = holds_slot and exists (
            select from slots where key = runs.job_id and slot_no = 0 and run_id = runs.id
        )
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
      and (state in ('queued', 'retrying') or (state = 'waiting' and reason <> 'paused'))
    returning id, scheduled_for, job_id
), unsent as (
    delete from outbox where slice = any (%(shards)b::smallint[]) and lane < 3 and run_id = any (%(ids)b::uuid[])
), freed as (
    delete from limit_slots
    where ctid = any (array(
        select found.ctid
        from paused, lateral (select ctid from limit_slots where run_id = paused.id offset 0) as found
    ))
)
insert into waits (run_id, scheduled_for, job_id, reason, since)
select id, scheduled_for, job_id, 'paused', noonmark_now() from paused
on conflict (run_id) do update set reason = excluded.reason, since = excluded.since, key = null
