-- Searches a range of all jobs, by id, for those that were paused with their namespace, or have runs that wait for its resume, or
-- open workflow runs in which something has ended meanwhile: those of a job that is over are not found by its state. A job that
-- is cancelled may let its open workflow runs finish.
with stretch as materialized (
    select id, namespace, state, paused_by from jobs where id > %(after)s order by id limit %(limit)s
), candidate as materialized (
    select id, state, paused_by from stretch
    where namespace = %(namespace)s
      and (state in ('active', 'completed', 'broken') or paused_by = 'namespace'
           or (state = 'cancelled' and exists (select from workflows where workflows.job_id = stretch.id offset 0)))
), paused as (
    select id from candidate
    where paused_by = 'namespace'
       or exists (select from waits where waits.job_id = candidate.id and waits.reason = 'paused' offset 0)
       or exists (select from timers where timers.job_id = candidate.id and timers.kind = 5
                                       and timers.fire_at >= '9999-12-31 00:00+00' offset 0)
)
select (select count(*) from stretch), (select id from stretch order by id desc limit 1),
       (select array_agg(id order by id) from paused)
