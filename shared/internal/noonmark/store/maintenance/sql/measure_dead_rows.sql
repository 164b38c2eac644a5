-- Reads the dead rows of the most changed tables from the statistics; the days of the ledger are added up.
select case when relname like 'runs\_%%' then 'runs' else relname end as shown, sum(n_dead_tup)::bigint as dead_rows
from pg_stat_user_tables
where schemaname = current_schema()
  and (relname ~ '^runs_[0-9]{8}$'
       or relname = any ('{timers,outbox,jobs,start_batches,slots,limit_slots,waits,workers,members,workflows}'))
group by shown
