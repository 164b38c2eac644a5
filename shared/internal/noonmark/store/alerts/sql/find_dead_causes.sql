-- Recent causes of dead letters: per recurring job, or per namespace for its one-time jobs.
with died as materialized (
    select namespace, fingerprint, job_id, died_at from dead_letters
    where died_at > (select died_until from observer_state) - make_interval(secs => %(look_back)s)
    order by died_at limit %(limit)s
)
select died.namespace, died.fingerprint, case when job.unique_name then died.job_id end as job_id, count(*) as letters,
       min(died_at) as first_at, max(died_at) as last_at
from died left join lateral (select unique_name from jobs where id = died.job_id offset 0) as job on true
group by 1, 2, 3
