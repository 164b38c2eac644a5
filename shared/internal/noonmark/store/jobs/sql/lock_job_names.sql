-- Serializes creates and cancels of one name whose events have a sequence: a cancel that finds no job writes a tombstone,
-- a create reads the tombstones, and neither may miss the other. Creates take a shared lock, cancels an exclusive one.
-- Names hash to a few buckets, locked in order and before any row, so that no two intakes deadlock.
select case when bucket.exclusive then pg_advisory_xact_lock(%(space)s::int, bucket.no)
            else pg_advisory_xact_lock_shared(%(space)s::int, bucket.no) end
from (
    select no, exclusive from unnest(%(buckets)b::int[], %(exclusive)b::bool[]) as u (no, exclusive)
    order by no offset 0
) as bucket
