-- Writes audit entries, however many, with one statement: a bulk change has an entry for each of its objects. A function,
-- as `insert_jobs` is.
select noonmark_insert_audit(
    %(actors)b::text[], %(actor_names)b::text[], %(actions)b::text[], %(namespaces)b::text[], %(objects)b::text[],
    %(outcomes)b::text[], %(reasons)b::text[], %(befores)b::text[], %(afters)b::text[], %(request_ids)b::text[],
    %(addresses)b::text[]
)
