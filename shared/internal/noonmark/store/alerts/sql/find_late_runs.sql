-- Walks the ledger in the order of the runs' ids, up to those that were made so long ago that they should have started, and
-- keeps those that have not. Each run is walked past once; held ones are not meant to start. Where there is no room to keep
-- more, the walk stands until there is. Jobs with a rule of their own have a walk to themselves, up to the shortest rule.
-- Tells whether there is more, and room for it.
with patience as (
    select case when %(ruled)s then min(late_after_seconds) else %(late_after)s end as seconds, count(*) as rules from late_rules
), state as (
    select case when %(ruled)s then ruled_to else walked_to end as walked_to,
           greatest(0, %(room)s - (select count(*) from late_runs)) as room,
           noonmark_first_id(noonmark_now() - make_interval(secs => coalesce(seconds, 0))) as until,
           case when %(ruled)s and rules = 0 then 0 else %(limit)s end as most
    from observer_state, patience
), walked as materialized (
    select made.* from state, noonmark_runs_made(walked_to, until, case when room > 0 then most else 0 end) as made
), late as materialized (
    select walked.id, scheduled_for, walked.job_id, namespace, pool, coalesce(job.unique_name, false) as recurring
    from walked left join lateral (select unique_name from jobs where jobs.id = walked.job_id offset 0) as job on true
    where state in ('queued', 'waiting') and started_at is null and origin <> 'backfill'
      and coalesce(reason, '') not in ('paused', 'overlap')
      and exists (select from late_rules where late_rules.job_id = walked.job_id) = %(ruled)s
    order by walked.id limit (select room from state)
), kept as (
    insert into late_runs (run_id, scheduled_for, job_id, namespace, pool, recurring)
    select id, scheduled_for, job_id, namespace, pool, recurring from late
    on conflict do nothing
), came as (
    select (select count(*) from late) >= room as full, (select count(*) from walked) = %(limit)s as more from state
), gone as (
    select case when came.full then coalesce((select id from late order by id desc limit 1), state.walked_to)
                when came.more then (select id from walked order by id desc limit 1)
                else greatest(state.walked_to, state.until) end as to
    from came, state
)
update observer_state
set walked_to = case when %(ruled)s then observer_state.walked_to else gone.to end,
    ruled_to = case when %(ruled)s then gone.to else ruled_to end
from came, gone
returning came.more and not came.full
