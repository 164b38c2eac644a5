-- Searches a range of all jobs, by id, for those that a pause of their namespace applies to. `jobs` has no index by
-- namespace, which every create would pay for; ranges keep each statement short. Jobs without a timer or an unfinished run stay
-- unchanged: one-time jobs that are over although their rows say active, and completed or broken jobs. Of cancelled jobs only
-- open workflow runs may go on.
with stretch as materialized (
    select id, namespace, state, schedule from jobs where id > %(after)s order by id limit %(limit)s
), candidate as materialized (
    select id, state = 'active' and schedule is not null and not schedule ? 'run_at' as recurring
    from stretch
    where namespace = %(namespace)s
      and (state in ('active', 'completed', 'broken')
           or (state = 'cancelled' and exists (select from workflows where workflows.job_id = stretch.id offset 0)))
), busy as (
    select id from candidate
    where recurring
       or exists (select from timers where timers.job_id = candidate.id offset 0)
       or exists (select from runs where runs.job_id = candidate.id
                  and (state in ('queued', 'retrying', 'running', 'cancelling') or state = 'waiting' and reason <> 'paused')
                  offset 0)
)
select (select count(*) from stretch), (select id from stretch order by id desc limit 1),
       (select array_agg(id order by id) from busy)
