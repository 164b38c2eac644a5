-- Advances the timers of jobs that fire again. The rows are locked by this transaction, so their ctids are stable.
-- A TID scan joined to the new instants; see `delete_outbox` for the array.
update timers
set fire_at = next.fire_at, scheduled_for = next.at, after_at = next.after_at, after_offset = next.after_offset,
    runs_left = next.runs_left
from unnest(%(places)b::tid[], %(at)b::timestamptz[], %(fire_at)b::timestamptz[], %(after_at)b::timestamptz[],
            %(after_offset)b::int[], %(runs_left)b::int[]) as next (place, at, fire_at, after_at, after_offset, runs_left)
where timers.ctid = any (array(select unnest(%(places)b::tid[]))) and timers.ctid = next.place
