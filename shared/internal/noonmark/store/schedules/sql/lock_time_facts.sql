-- Keeps the facts that documents are checked with unchanged until the transaction ends. Later statements see all earlier
-- changes.
select pg_advisory_xact_lock_shared(%(lock)s::bigint)
