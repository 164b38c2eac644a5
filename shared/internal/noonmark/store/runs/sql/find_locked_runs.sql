-- Returns which of these runs another transaction has locked, or has locked a slot of, without waiting for it: a statement about
-- all of them has waited too long. The others are locked for the length of this statement only.
with free as materialized (
    select id from runs
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
    for no key update skip locked
), mine as materialized (
    select id, job_id from runs
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
), held as (
    select slots.ctid as place, slots.run_id
    from mine
    join lateral (
        select ctid, run_id from slots where key = mine.job_id and slot_no = 0 and run_id = mine.id offset 0
    ) as slots on true
), free_slots as materialized (
    select ctid as place from slots where ctid = any (array(select place from held)) for update skip locked
), held_limits as (
    select limits.ctid as place, limits.run_id
    from mine
    join lateral (select ctid, run_id from limit_slots where run_id = mine.id offset 0) as limits on true
), free_limits as materialized (
    select ctid as place from limit_slots where ctid = any (array(select place from held_limits)) for update skip locked
)
select id from mine where id not in (select id from free)
union
select run_id from held where place not in (select place from free_slots)
union
select run_id from held_limits where place not in (select place from free_limits)
