-- Looks through a stretch of all jobs, by id, for those that a pause of their namespace holds, or of which it holds runs.
with stretch as materialized (
    select id, namespace, state, paused_by from jobs where id > %(after)s order by id limit %(limit)s
), meant as materialized (
    select id, state, paused_by from stretch
    where namespace = %(namespace)s and (state in ('active', 'completed', 'broken') or paused_by = 'namespace')
), held as (
    select id from meant
    where paused_by = 'namespace'
       or exists (select from waits where waits.job_id = meant.id and waits.reason = 'paused' offset 0)
)
select (select count(*) from stretch), (select id from stretch order by id desc limit 1),
       (select array_agg(id order by id) from held)
