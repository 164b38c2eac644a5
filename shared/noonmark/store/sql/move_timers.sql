-- Advances the timers of jobs that fire again. The rows are locked by this transaction, so their places hold.
update timers
set fire_at = next.at, scheduled_for = next.at
from unnest(%(places)b::tid[], %(at)b::timestamptz[]) as next (place, at)
where timers.ctid = next.place
