-- A start batch goes with its last run.
delete from start_batches where id = any (%(ids)b::bigint[])
