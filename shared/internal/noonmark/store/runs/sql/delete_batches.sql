-- Deletes start batches whose last run has finished. The caller may have locked runs, and a trigger locks batches before their
-- runs: a batch that it has locked is left to it, so that neither waits for the other. If that trigger fails, the worker finds
-- the batch without runs and deletes it, or the next pass does.
delete from start_batches
where id = any (array(select id from start_batches where id = any (%(ids)b::bigint[]) for update skip locked))
