-- Writes the compiled tasks of a version of a workflow, in the transaction that writes the version.
insert into workflow_tasks (job_id, version, task_no, key, kind, handler, lane, pool, work, graph, document)
select job_id, version, task_no, key, kind, handler, lane, pool, work::json, graph::json, document::json
from unnest(%(job_ids)b::uuid[], %(versions)b::int[], %(task_nos)b::int[], %(keys)b::text[], %(kinds)b::text[],
            %(handlers)b::text[], %(lanes)b::smallint[], %(pools)b::text[], %(works)b::text[], %(graphs)b::text[],
            %(documents)b::text[])
     as u (job_id, version, task_no, key, kind, handler, lane, pool, work, graph, document)
