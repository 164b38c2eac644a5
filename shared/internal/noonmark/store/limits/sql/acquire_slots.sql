-- Acquires an overlap slot for each run that needs one; a run that gets none is not returned.
insert into slots (key, slot_no, run_id, taken_at)
select key, 0, run_id, noonmark_now()
from unnest(%(keys)b::uuid[], %(run_ids)b::uuid[]) as requested (key, run_id)
on conflict do nothing
returning run_id
