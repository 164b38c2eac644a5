-- Takes an overlap slot for each run that needs one; a run that gets none is not returned.
insert into slots (key, slot_no, run_id, scheduled_for, taken_at)
select key, 0, run_id, scheduled_for, noonmark_now()
from unnest(%(keys)b::text[], %(run_ids)b::uuid[], %(scheduled_for)b::timestamptz[]) as wish (key, run_id, scheduled_for)
on conflict do nothing
returning run_id
