-- Deletes the states of workflow runs that are not in the ledger any more; the pass holds their locks.
delete from workflows where run_id = any (%(ids)b::uuid[])
