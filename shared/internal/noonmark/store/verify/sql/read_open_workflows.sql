-- Reads what is kept of those workflow runs that are open.
select run_id::text, generation, progress, choices, stopping from workflows where run_id = any (%(ids)s::uuid[])
