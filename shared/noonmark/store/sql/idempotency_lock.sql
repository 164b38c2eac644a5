-- Lets requests with the same key follow each other, in whichever process they are: the second finds what the first was
-- answered. In one order, so that two batches with the same keys wait instead of deadlocking.
select pg_advisory_xact_lock(place)
from (
    select distinct hashtextextended(namespace || '/' || key, 7014) as place
    from unnest(%(namespaces)s::text[], %(keys)s::text[]) as given (namespace, key)
    order by 1
) as ordered
