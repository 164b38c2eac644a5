-- Inserts new jobs. A row that conflicts with one of the two unique keys (idempotency key; name of a recurring job) is
-- left out, whichever client wrote the other; the caller finds out why. The ids of the inserted rows are returned as one string
-- of 16 bytes each, and only if some were left out. A column with equal values is passed as one value. This is a function,
-- because its plan is cached: planning costs more than inserting a few rows.
select written, kept
from noonmark_insert_jobs(
    %(now)s, %(wanted)s::int,
    %(ids)b::uuid[], %(shards)b::smallint[], %(namespaces)b::text[], %(namespaces_all)s::text,
    %(names)b::text[], %(names_all)s::text, %(kinds)b::text[], %(kinds_all)s::text,
    %(handlers)b::text[], %(handlers_all)s::text, %(lanes)b::smallint[], %(lanes_all)s::smallint,
    %(pools)b::text[], %(pools_all)s::text, %(schedules)b::text[], %(schedules_all)s::text,
    %(policies)b::text[], %(policies_all)s::text, %(works)b::text[], %(works_all)s::text,
    %(labels)b::text[], %(labels_all)s::text, %(descriptions)b::text[], %(descriptions_all)s::text,
    %(owners)b::text[], %(owners_all)s::text, %(idempotency_keys)b::text[], %(idempotency_keys_all)s::text,
    %(unique_names)b::bool[], %(unique_names_all)s::bool, %(sequences)b::bigint[], %(sequences_all)s::bigint,
    %(states)b::text[], %(states_all)s::text
)
