-- Ledger days older than the retention, oldest first.
select child.relname, to_date(right(child.relname, 8), 'YYYYMMDD') as day
from pg_inherits
join pg_class as child on child.oid = pg_inherits.inhrelid
where pg_inherits.inhparent = 'runs'::regclass
  and to_date(right(child.relname, 8), 'YYYYMMDD') < (noonmark_now() at time zone 'UTC')::date - %(retention_days)s
order by 1
