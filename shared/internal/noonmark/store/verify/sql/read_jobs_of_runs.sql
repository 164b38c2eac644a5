-- Reads the jobs of a step, each by its key: without their work, which can be large.
select jobs.id::text, namespace, coalesce(name, jobs.id::text) as name, state, version, created_at, changed_at, shard, paused_at
from unnest(%(ids)s::uuid[]) as wanted (id)
cross join lateral (
    select id, namespace, name, state, version, created_at, updated_at as changed_at, shard, paused_at
    from jobs
    where id = wanted.id
    offset 0
) as jobs
