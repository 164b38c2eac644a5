-- Removes acknowledged rows. A TID scan; the sequence guards against a place that was used anew.
-- The array comes from a sub-select so that the planner cannot count it: it would rather read a table that is
-- short at this moment from end to end.
delete from outbox where ctid = any (array(select unnest(%(places)b::tid[]))) and seq = any (%(seqs)b::bigint[])
