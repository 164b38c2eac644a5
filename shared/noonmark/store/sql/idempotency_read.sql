-- What requests with these keys were answered before. Under the locks of `idempotency_lock` nobody adds one of them.
select namespace, key, request_hash, status, body
from unnest(%(namespaces)s::text[], %(keys)s::text[]) as given (namespace, key) join idempotency using (namespace, key)
