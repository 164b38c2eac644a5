-- Deletes acknowledged rows. A TID scan; the sequence guards against a ctid that was used again.
-- The array comes from a sub-select so that the planner cannot count it: otherwise it would scan a table that is short now.
with deleted as (
    delete from outbox where ctid = any (array(select unnest(%(places)b::tid[]))) and seq = any (%(seqs)b::bigint[])
    returning 1
)
select count(*) from deleted
