-- Lets requests with the same key follow each other, in whichever process they are: the second finds what the first was
-- answered. A function: it waits first, and what it reads then is a statement of its own.
select of_namespace, of_key, of_hash, of_status, of_body
from noonmark_answers_before(%(namespaces)b::text[], %(keys)b::text[])
