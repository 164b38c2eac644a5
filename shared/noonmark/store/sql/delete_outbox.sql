-- Removes acknowledged rows. A TID scan; the sequence guards against a place that was used anew.
delete from outbox where ctid = any (%(places)b::tid[]) and seq = any (%(seqs)b::bigint[])
