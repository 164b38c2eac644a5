-- Serializes requests with the same key, in all processes: the second one finds the response to the first. This is a
-- function, because it waits first, and what it reads after that must be a separate statement.
select of_namespace, of_key, of_hash, of_status, of_body
from noonmark_answers_before(%(namespaces)b::text[], %(keys)b::text[])
