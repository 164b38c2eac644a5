-- Acquires those of these slots that nobody has, for one run each; a run that gets none is not returned. A row that is inserted
-- without ON CONFLICT needs one WAL record less. If another transaction acquires one of the slots at the same moment, this waits
-- for it and then fails: `acquire_slots` decides instead. Each slot is looked up separately, which uses the index in any case.
insert into slots (key, slot_no, run_id, taken_at)
select requested.key, 0, requested.run_id, noonmark_now()
from unnest(%(keys)b::uuid[], %(run_ids)b::uuid[]) as requested (key, run_id)
     left join lateral (select true as held from slots where key = requested.key and slot_no = 0 offset 0) as taken on true
where taken.held is null
returning run_id
