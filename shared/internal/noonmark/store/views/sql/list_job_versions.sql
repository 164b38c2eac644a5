-- The versions of a job, the newest first: the current one and those that edits replaced. Versions for a single run are left
-- out.
select version, name, kind, handler, lane, pool, work, schedule, policy, labels, description, owner, replaced_at, namespace
from (
    select version, name, kind, handler, lane, pool, work, schedule, policy, labels, description, owner,
           null::timestamptz as replaced_at, namespace
    from jobs where id = %(job_id)s
    union all
    select old.version, old.name, old.kind, old.handler, old.lane, old.pool, old.work, old.schedule, old.policy, old.labels,
           old.description, old.owner, old.replaced_at, jobs.namespace
    from job_versions as old join jobs on jobs.id = old.job_id
    where old.job_id = %(job_id)s and old.version < 1000000000
) as known
where %(versions)s::int[] is null or version = any (%(versions)s::int[])
order by version desc
limit %(limit)s
