-- What bounds every backfill: the database's time, how far back the ledger reaches, the zone data in force.
select noonmark_now() as now, ledger_floor, (select version from zone_data where active) as zone_data from install
