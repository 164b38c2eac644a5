-- Keeps answers in the transaction that made what they tell of. A function, as `job_insert` is.
select noonmark_keep_answers(
    %(namespaces)b::text[], %(keys)b::text[], %(hashes)b::bytea[], %(statuses)b::smallint[], %(bodies)b::text[]
)
