-- Reads the bounds of every backfill: the database's time, the ledger floor, the active zone data.
select noonmark_now() as now, ledger_floor, (select version from zone_data where active) as zone_data from install
