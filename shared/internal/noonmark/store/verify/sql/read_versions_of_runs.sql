-- Reads the retry policies of job versions, and whether their target may report the outcome later, by their key: of those that
-- the job has now, or had before an edit. The version that a job has now is not among its earlier ones. A document that Postgres
-- cannot read (half a surrogate pair, NUL) has neither.
select wanted.job_id::text as job, wanted.version, readable.work -> 'retry' as retry,
       readable.work -> 'payload' -> 'callback' is not null as reports_later
from unnest(%(jobs)s::uuid[], %(versions)s::int[]) as wanted (job_id, version)
cross join lateral (
    select work from jobs where id = wanted.job_id and version = wanted.version
    union all
    select work from job_versions where job_id = wanted.job_id and version = wanted.version
    limit 1
) as found
cross join lateral (
    select case when found.work::text !~* '(^|[^\\])(\\\\)*\\u(d[89a-f]|0000)' then found.work end as work
) as readable
where found.work is not null
