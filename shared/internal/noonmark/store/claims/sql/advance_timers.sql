-- Advances the timers of jobs that fire again. The rows are locked by this transaction, so their ctids are stable.
-- Each is a TID scan of its own: the join has no other way than to look up each place.
update timers
set fire_at = next.fire_at, scheduled_for = next.at, after_at = next.after_at, after_offset = next.after_offset,
    runs_left = next.runs_left
from unnest(%(places)b::tid[], %(at)b::timestamptz[], %(fire_at)b::timestamptz[], %(after_at)b::timestamptz[],
            %(after_offset)b::int[], %(runs_left)b::int[]) as next (place, at, fire_at, after_at, after_offset, runs_left)
where timers.ctid = next.place
