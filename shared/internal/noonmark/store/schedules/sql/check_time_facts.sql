-- One row if documents that were checked with cached facts are still valid, and the cached time is right to within a second.
select
from install
where facts = %(facts)s::bigint and ledger_floor = %(ledger_floor)s::timestamptz
      and noonmark_now() - %(now)s::timestamptz between interval '-1 second' and interval '1 second'
