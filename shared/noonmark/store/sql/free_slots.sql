-- Frees what runs held; part of the transaction that ends them.
delete from slots where run_id = any (%(run_ids)b::uuid[])
