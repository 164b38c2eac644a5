-- Deletes backfills that ended before the ledger's retention: their runs are dropped with their days.
delete from backfills where finished_at < noonmark_now() - make_interval(days => %(days)s)
