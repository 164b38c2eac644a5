-- Writes what is known of open workflows after a pass, which holds their locks.
update workflows
set progress = passed.progress, choices = passed.choices, stopping = passed.stopping
from unnest(%(ids)b::uuid[], %(progress)b::bytea[], %(choices)b::bytea[], %(stopping)b::text[])
     as passed (run_id, progress, choices, stopping)
where workflows.run_id = passed.run_id
returning workflows.run_id
