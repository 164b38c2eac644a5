-- Reads the work of runs whose job was edited after they were planned: a run keeps the version it was planned with.
select old.job_id, old.version, old.kind, old.handler, old.work::text
from job_versions as old
join unnest(%(job_ids)b::uuid[], %(versions)b::int[]) as wanted (job_id, version)
  on old.job_id = wanted.job_id and old.version = wanted.version
