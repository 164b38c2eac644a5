-- Reads the retry policies of job versions, by their key: of those that the job has now, or had before an edit. The version
-- that a job has now is not among its earlier ones.
select wanted.job_id::text as job, wanted.version, noonmark_readable(found.work) -> 'retry' as retry
from unnest(%(jobs)s::uuid[], %(versions)s::int[]) as wanted (job_id, version)
cross join lateral (
    select work from jobs where id = wanted.job_id and version = wanted.version
    union all
    select work from job_versions where job_id = wanted.job_id and version = wanted.version
    limit 1
) as found
where found.work is not null
