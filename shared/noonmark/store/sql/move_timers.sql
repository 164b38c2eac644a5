-- Advances the timers of jobs that fire again. The rows are locked by this transaction, so their places hold.
-- A TID scan joined to the new instants; see `delete_outbox` for the array.
update timers
set fire_at = next.at, scheduled_for = next.at
from unnest(%(places)b::tid[], %(at)b::timestamptz[]) as next (place, at)
where timers.ctid = any (array(select unnest(%(places)b::tid[]))) and timers.ctid = next.place
