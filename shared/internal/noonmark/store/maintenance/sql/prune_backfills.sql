-- Backfills that ended before the ledger's retention: their runs are gone with their days, or going.
delete from backfills where finished_at < noonmark_now() - make_interval(days => %(days)s)
