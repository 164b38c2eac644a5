-- Deletes start batches whose last run has finished.
delete from start_batches where id = any (%(ids)b::bigint[])
