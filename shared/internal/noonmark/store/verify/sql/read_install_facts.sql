-- Reads what rows of the ledger refer to: the number of shards, and the ids of the releases of the zone data.
select shards, array(select id from zone_data) from install
