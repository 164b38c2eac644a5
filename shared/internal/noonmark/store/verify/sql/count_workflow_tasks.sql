-- Counts the tasks of versions of workflows: how many rows their runs have.
select task.job_id::text, task.version, count(*)
from unnest(%(jobs)s::uuid[], %(versions)s::int[]) as wanted (job_id, version)
join workflow_tasks as task using (job_id, version)
group by task.job_id, task.version
