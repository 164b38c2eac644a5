-- Orders creates and cancels of one name whose events carry a sequence: a cancel that finds no job leaves a
-- tombstone, a create reads the tombstones, and neither may miss the other. Creates share, cancels exclude.
-- Names fall into few buckets, taken in order and before any row lock, so that no two intakes deadlock.
select case when bucket.exclusive then pg_advisory_xact_lock(%(space)s::int, bucket.no)
            else pg_advisory_xact_lock_shared(%(space)s::int, bucket.no) end
from (
    select no, exclusive from unnest(%(buckets)b::int[], %(exclusive)b::bool[]) as u (no, exclusive)
    order by no offset 0
) as bucket
