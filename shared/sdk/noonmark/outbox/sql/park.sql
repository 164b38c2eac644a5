-- Parks rows that noonmark refuses, each with the reason, so that they do not block the others.
update noonmark_outbox
set parked_at = clock_timestamp(), error = refused.error
from unnest(%(ids)s::uuid[], %(errors)s::text[]) as refused (id, error)
where noonmark_outbox.id = refused.id and parked_at is null
