-- Before timers are planned one by one: writes the slots of runs that hold them without a row, because their timers are about to
-- name a later instant. Returns the jobs whose run is locked, such as by its worker or a person: they are left for a later claim.
with held as materialized (
    select timer.job_id, run.id, run.scheduled_for
    from unnest(%(job_ids)b::uuid[], %(instants)b::timestamptz[]) as timer (job_id, instant)
         join lateral (
             select id, scheduled_for from runs
             where job_id = timer.job_id and scheduled_for = timer.instant and origin = 'schedule' and request_id = ''
               and holds_slot and finished_at is null offset 0
         ) as run on true
         left join lateral (select true as there from slots where key = timer.job_id and slot_no = 0 offset 0) as slot on true
    where slot.there is null
), locked as materialized (
    select held.job_id, held.id
    from held,
         lateral (
             select id from runs
             where id = held.id and scheduled_for = held.scheduled_for and finished_at is null
             for share skip locked
         ) as run
), kept as (
    insert into slots (key, slot_no, run_id, taken_at)
    select job_id, 0, id, noonmark_now() from locked order by job_id
)
select job_id from held where id not in (select id from locked)
