-- Acquires slots of limits and caps for runs that were just queued. Two passes that give out the same slot cannot both commit.
insert into limit_slots (key, slot_no, run_id, namespace, limit_name)
select * from unnest(%(keys)b::uuid[], %(numbers)b::int[], %(run_ids)b::uuid[], %(namespaces)b::text[], %(limit_names)b::text[])
