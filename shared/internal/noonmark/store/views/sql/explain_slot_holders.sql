-- Which runs hold slots at these gates: the overlap slot of a job, or the first slots of a limit or cap.
select gate.key, slot.run_id
from unnest(%(keys)b::uuid[]) as gate (key),
     lateral (
         select run_id from slots where key = gate.key
         union all
         (select run_id from limit_slots where key = gate.key order by slot_no limit %(most)s)
     ) as slot
