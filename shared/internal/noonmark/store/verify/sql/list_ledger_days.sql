-- Lists the days of the ledger that a window of instants touches, oldest first. Materialised, so that the name of no other
-- table is ever parsed as a date.
with days as materialized (
    select child.relname
    from pg_inherits
    join pg_class as child on child.oid = pg_inherits.inhrelid
    where pg_inherits.inhparent = 'runs'::regclass
)
select to_date(right(relname, 8), 'YYYYMMDD')::timestamp at time zone 'UTC' as day
from days
where to_date(right(relname, 8), 'YYYYMMDD') >= (%(since)s::timestamptz at time zone 'UTC')::date
  and to_date(right(relname, 8), 'YYYYMMDD')::timestamp < %(until)s::timestamptz at time zone 'UTC'
order by 1
