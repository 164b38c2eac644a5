-- Frees what runs held; part of the transaction that ends them. Found by key: an index by run would cost
-- every recurring run more than the slot itself.
delete from slots where key = any (%(keys)b::uuid[]) and run_id = any (%(run_ids)b::uuid[])
