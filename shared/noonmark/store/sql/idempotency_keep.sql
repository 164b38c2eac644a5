-- Keeps answers in the transaction that made what they tell of.
insert into idempotency (namespace, key, request_hash, status, body)
select namespace, key, request_hash, status, body::jsonb
from unnest(%(namespaces)s::text[], %(keys)s::text[], %(hashes)s::bytea[], %(statuses)s::smallint[], %(bodies)s::text[])
     as given (namespace, key, request_hash, status, body)
