-- History goes with its job, a bounded number at a time, from a place that moves on.
with looked as materialized (
    select job_id from job_stats where job_id > %(after)s order by job_id limit %(limit)s
), gone as (
    delete from job_stats
    where job_id in (select looked.job_id
                     from looked
                     left join lateral (select true as there from jobs where id = looked.job_id offset 0) as job on true
                     where job.there is null)
)
select job_id from looked order by job_id desc limit 1
