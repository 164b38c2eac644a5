-- Counts the recurring jobs of namespaces with a quota that are not cancelled, by the index on names and only up to the
-- quota. This is a separate statement: after waiting for the lock, it must see the jobs committed during the wait.
select quota.name, (
    select count(*) from (
        select from jobs
        where jobs.namespace = quota.name and unique_name and state <> 'cancelled'
        limit quota.most
    ) as counted
)
from unnest(%(names)s::text[], %(most)s::int[]) as quota (name, most)
