-- Retires keys of a namespace, but never the newest, because calls must always be signed. The lock serializes two requests:
-- a key that the first one retired is not among those that the second one finds.
with valid as materialized (
    select key_id from signing_keys where namespace = %(namespace)s and retired_at is null order by key_id for update
)
update signing_keys
set retired_at = noonmark_now()
where namespace = %(namespace)s and retired_at is null
  and key_id <> (select max(key_id::int)::text from valid)
  and (%(key_id)s::text is null or key_id = %(key_id)s)
returning key_id
