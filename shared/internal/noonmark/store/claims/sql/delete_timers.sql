-- Deletes the timers of jobs that never fire again or cannot be planned. A TID scan, see `delete_outbox`.
delete from timers where ctid = any (array(select unnest(%(places)b::tid[])))
