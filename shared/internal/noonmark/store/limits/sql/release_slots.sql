-- Frees what runs held, overlap slots and those of limits; part of the transaction that ends them. Overlap slots are found
-- by key: an index by run would cost every recurring run more than the slot itself. Says whether a run waits for what was
-- freed. Each row is looked up by itself, which uses the indexes whatever the statistics say.
with freed as (
    delete from slots
    where ctid = any (array(
        select mine.ctid
        from unnest(%(keys)b::uuid[], %(run_ids)b::uuid[]) as wish (key, run_id),
             lateral (select ctid from slots where key = wish.key and slot_no = 0 and run_id = wish.run_id offset 0) as mine
    ))
    returning key
), freed_limits as (
    delete from limit_slots
    where ctid = any (array(
        select mine.ctid
        from unnest(%(run_ids)b::uuid[]) as wish (run_id),
             lateral (select ctid from limit_slots where run_id = wish.run_id offset 0) as mine
    ))
    returning key
)
select exists (
    select from (select key from freed union select key from freed_limits) as gone,
                lateral (select key from waits where key = gone.key order by key, lane, since limit 1) as next
)
