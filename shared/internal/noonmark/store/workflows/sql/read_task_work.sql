-- What runs of tasks execute: kind, handler and work of their task.
select task.job_id, task.version, task.task_no, task.kind, task.handler, task.work::text
from unnest(%(job_ids)b::uuid[], %(versions)b::int[], %(task_nos)b::int[]) as wanted (job_id, version, task_no)
join workflow_tasks as task using (job_id, version, task_no)
