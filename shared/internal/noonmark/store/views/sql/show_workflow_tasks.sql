-- The tasks of versions of a workflow, by their key, the newest version first: as many whole versions as have together no more
-- tasks than a listing may read. Their documents are read only if they are wanted: they have the payloads.
select version, key, graph, case when %(documents)s then document end as document
from (
    -- Rows of one version are peers: each has the number of tasks of its version and all newer ones.
    select version, task_no, key, graph, document, count(*) over (order by version desc) as up_to
    from workflow_tasks
    where job_id = %(job_id)s and version = any (%(versions)s::int[])
) as counted
where up_to <= %(most)s
order by version desc, task_no
