-- Locks keys like `read_idempotent_responses`; one row if none of them has a stored response.
select
where not exists (
    select from noonmark_answers_before(%(key_namespaces)b::text[], %(key_texts)b::text[])
)
