-- Searches a range of all jobs, by id, for those that were paused with their namespace, or have runs
-- that wait for its resume.
with stretch as materialized (
    select id, namespace, state, paused_by from jobs where id > %(after)s order by id limit %(limit)s
), candidate as materialized (
    select id, state, paused_by from stretch
    where namespace = %(namespace)s and (state in ('active', 'completed', 'broken') or paused_by = 'namespace')
), paused as (
    select id from candidate
    where paused_by = 'namespace'
       or exists (select from waits where waits.job_id = candidate.id and waits.reason = 'paused' offset 0)
)
select (select count(*) from stretch), (select id from stretch order by id desc limit 1),
       (select array_agg(id order by id) from paused)
