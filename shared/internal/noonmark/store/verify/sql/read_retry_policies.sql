-- Reads the retry policies of job versions, by their key: of those that the job has now, or had before an edit.
select wanted.job_id::text as job, wanted.version, coalesce(job.work, old.work) -> 'retry' as retry
from unnest(%(jobs)s::uuid[], %(versions)s::int[]) as wanted (job_id, version)
left join jobs as job on job.id = wanted.job_id and job.version = wanted.version
left join job_versions as old on old.job_id = wanted.job_id and old.version = wanted.version
where coalesce(job.work, old.work) is not null
