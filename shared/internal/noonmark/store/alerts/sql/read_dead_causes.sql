-- The current state of causes: their dead letters, counted up to a cap, the newest of them, and when the job last succeeded.
-- A cause without a job is that of one-time jobs: it is checked one by one which jobs of the newest letters are recurring.
select cause.namespace, cause.fingerprint, cause.job_id, counted.letters, counted.more, newest.run_id, newest.died_at,
       newest.error, newest.reason, newest.kind, newest.name, newest.attempts, stats.last_success_at
from unnest(%(namespaces)b::text[], %(fingerprints)b::text[], %(job_ids)b::uuid[]) as cause (namespace, fingerprint, job_id)
cross join lateral (
    select count(*) filter (where mine) as letters, count(*) >= %(most)s as more,
           (array_agg(run_id order by died_at desc, run_id desc) filter (where mine))[1] as run_id
    from (
        (select run_id, died_at, true as mine from dead_letters
         where cause.job_id is not null and job_id = cause.job_id and fingerprint = cause.fingerprint
         order by died_at desc, run_id desc limit %(most)s)
        union all
        (select letter.run_id, letter.died_at, job.unique_name is not true as mine
         from (
             select run_id, died_at, job_id from dead_letters
             where cause.job_id is null and namespace = cause.namespace and fingerprint = cause.fingerprint
             order by died_at desc, run_id desc limit %(most)s
         ) as letter
         left join lateral (select unique_name from jobs where id = letter.job_id offset 0) as job on true)
    ) as head
) as counted
cross join lateral (
    select run_id, died_at, error, reason, kind, name, attempts from dead_letters where run_id = counted.run_id offset 0
) as newest
left join lateral (select last_success_at from job_stats where job_id = cause.job_id offset 0) as stats on true
