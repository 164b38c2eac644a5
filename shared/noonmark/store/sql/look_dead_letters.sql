-- What is left of causes: their dead letters, counted up to a cap, the newest of them, and when the job last succeeded.
select cause.namespace, cause.fingerprint, cause.job_id, counted.letters, newest.run_id, newest.died_at, newest.error,
       newest.reason, newest.kind, newest.name, newest.attempts, stats.last_success_at
from unnest(%(namespaces)b::text[], %(fingerprints)b::text[], %(job_ids)b::uuid[]) as cause (namespace, fingerprint, job_id)
cross join lateral (
    select count(*) as letters from (
        select from dead_letters
        where namespace = cause.namespace and fingerprint = cause.fingerprint and (cause.job_id is null or job_id = cause.job_id)
        limit %(most)s) as part
) as counted
cross join lateral (
    select run_id, died_at, error, reason, kind, name, attempts from dead_letters
    where namespace = cause.namespace and fingerprint = cause.fingerprint and (cause.job_id is null or job_id = cause.job_id)
    order by died_at desc, run_id desc limit 1
) as newest
left join lateral (select last_success_at from job_stats where job_id = cause.job_id offset 0) as stats on true
