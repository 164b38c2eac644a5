-- Counts the recurring jobs of namespaces with a quota that are not cancelled, in the index on names and no further than
-- the quota. A statement of its own: one that waits for the lock sees the jobs of before the wait.
select quota.name, (
    select count(*) from (
        select from jobs
        where jobs.namespace = quota.name and unique_name and state <> 'cancelled'
        limit quota.most
    ) as counted
)
from unnest(%(names)s::text[], %(most)s::int[]) as quota (name, most)
