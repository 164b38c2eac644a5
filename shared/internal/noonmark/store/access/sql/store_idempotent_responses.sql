-- Stores responses in the transaction that makes the changes they report. This is a function for the same reason as
-- `insert_jobs`.
select noonmark_keep_answers(
    %(namespaces)b::text[], %(keys)b::text[], %(hashes)b::bytea[], %(statuses)b::smallint[], %(bodies)b::text[]
)
