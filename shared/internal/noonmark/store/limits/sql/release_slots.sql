-- Releases the slots of runs, overlap slots and those of limits, in the transaction that ends the runs. Overlap slots are
-- found by key: an index by run would cost every recurring run more than the slot itself. Returns whether a run waits for a
-- released slot. Each row is looked up separately, which uses the indexes whatever the statistics are.
with freed as (
    delete from slots
    where ctid = any (array(
        select found.ctid
        from unnest(%(keys)b::uuid[], %(run_ids)b::uuid[]) as ended (key, run_id),
             lateral (select ctid from slots where key = ended.key and slot_no = 0 and run_id = ended.run_id offset 0) as found
    ))
    returning key
), freed_limits as (
    delete from limit_slots
    where ctid = any (array(
        select found.ctid
        from unnest(%(run_ids)b::uuid[]) as ended (run_id),
             lateral (select ctid from limit_slots where run_id = ended.run_id offset 0) as found
    ))
    returning key
)
select exists (
    select from (select key from freed union select key from freed_limits) as released,
                lateral (select key from waits where key = released.key order by key, lane, since limit 1) as next
)
