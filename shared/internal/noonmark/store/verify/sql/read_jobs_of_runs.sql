-- Reads the jobs of a step, by their key: without their work, which can be large.
select id::text, namespace, coalesce(name, id::text) as name, state, version, created_at, updated_at as changed_at, paused_at
from jobs
where id = any (%(ids)s::uuid[])
