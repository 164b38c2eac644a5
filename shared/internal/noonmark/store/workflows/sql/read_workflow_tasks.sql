-- The compiled tasks of versions of workflows as JSON, and the longest time that a run of the version may take.
select wanted.job_id, wanted.version, task.all_tasks,
       coalesce(
           (select work -> 'deadline_seconds' from jobs where jobs.id = wanted.job_id and jobs.version = wanted.version),
           (select work -> 'deadline_seconds' from job_versions as old
            where old.job_id = wanted.job_id and old.version = wanted.version)
       )::text as deadline_seconds
from unnest(%(job_ids)b::uuid[], %(versions)b::int[]) as wanted (job_id, version),
     lateral (
         select json_agg(json_build_array(task_no, key, lane, pool, graph) order by task_no)::text as all_tasks
         from workflow_tasks where job_id = wanted.job_id and version = wanted.version
     ) as task
where task.all_tasks is not null
