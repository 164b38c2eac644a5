-- Searches a range of all jobs, by id, for those of a namespace that Postgres would claim without the planner, in the same
-- way as `find_jobs_to_pause_with_namespace`.
with stretch as materialized (
    select id, namespace from jobs where id > %(after)s order by id limit %(limit)s
)
select (select count(*) from stretch), (select id from stretch order by id desc limit 1),
       (select array_agg(id order by id) from stretch
        where namespace = %(namespace)s
          and exists (select from timers where timers.job_id = stretch.id and timers.kind = 0 offset 0))
