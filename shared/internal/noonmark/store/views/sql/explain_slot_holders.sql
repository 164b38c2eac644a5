-- Which runs hold slots at these gates: the overlap slot of a job, whose run may have no row in `slots`, or the first slots of a
-- limit or cap.
select gate.key, slot.run_id
from unnest(%(keys)b::uuid[]) as gate (key),
     lateral (
         select run_id from slots where key = gate.key
         union
         select holder from timers, noonmark_rowless_holder(job_id, after_at) as holder
         where job_id = gate.key and kind in (1, 3) and holder is not null
         union all
         (select run_id from limit_slots where key = gate.key order by slot_no limit %(most)s)
     ) as slot
