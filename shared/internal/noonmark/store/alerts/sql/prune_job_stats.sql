-- Deletes the statistics of jobs that no longer exist, a bounded number at a time, from a position that advances.
with checked as materialized (
    select job_id from job_stats where job_id > %(after)s order by job_id limit %(limit)s
), deleted as (
    delete from job_stats
    where job_id in (select checked.job_id
                     from checked
                     left join lateral (select true as there from jobs where id = checked.job_id offset 0) as job on true
                     where job.there is null)
)
select job_id from checked order by job_id desc limit 1
