-- Reads the compiled tasks of versions of workflows, by number, and the longest time that a run of the version may take.
select task.job_id::text, task.version, task.task_no, task.key, task.graph::text,
       coalesce(
           (select work -> 'deadline_seconds' from jobs where jobs.id = task.job_id and jobs.version = task.version),
           (select work -> 'deadline_seconds' from job_versions as old
            where old.job_id = task.job_id and old.version = task.version)
       )::text as deadline_seconds
from unnest(%(jobs)s::uuid[], %(versions)s::int[]) as wanted (job_id, version)
join workflow_tasks as task using (job_id, version)
order by task.job_id, task.version, task.task_no
