-- Keeps answers in the transaction that made what they tell of. A function, as `insert_jobs` is.
select noonmark_keep_answers(
    %(namespaces)b::text[], %(keys)b::text[], %(hashes)b::bytea[], %(statuses)b::smallint[], %(bodies)b::text[]
)
