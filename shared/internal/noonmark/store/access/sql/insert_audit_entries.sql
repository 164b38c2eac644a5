-- Inserts any number of audit entries with one statement: a bulk change has an entry for each of its objects. This is a
-- function for the same reason as `insert_jobs`.
select noonmark_insert_audit(
    %(actors)b::text[], %(actor_names)b::text[], %(actions)b::text[], %(namespaces)b::text[], %(objects)b::text[],
    %(outcomes)b::text[], %(reasons)b::text[], %(befores)b::text[], %(afters)b::text[], %(request_ids)b::text[],
    %(addresses)b::text[]
)
