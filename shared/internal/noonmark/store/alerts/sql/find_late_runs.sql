-- Walks the ledger in the order of run ids, up to those that are old enough that they should have started, and stores those
-- that have not. Each run is passed once; runs deferred by a pause or an overlap are left out, and those of tasks, which are not
-- due at their instants. At the maximum number of stored runs, the walk waits for free capacity. Jobs with their own rule have a
-- separate walk, up to the shortest rule. Returns whether there is more to read, and capacity for it.
with patience as (
    select case when %(ruled)s then min(late_after_seconds) else %(late_after)s end as seconds, count(*) as rules from late_rules
), state as (
    select case when %(ruled)s then ruled_to else walked_to end as walked_to,
           greatest(0, %(capacity)s - (select count(*) from late_runs)) as capacity,
           noonmark_first_id(noonmark_now() - make_interval(secs => coalesce(seconds, 0))) as until,
           case when %(ruled)s and rules = 0 then 0 else %(limit)s end as most
    from observer_state, patience
), walked as materialized (
    select created.* from state, noonmark_runs_made(walked_to, until, case when capacity > 0 then most else 0 end) as created
), late as materialized (
    select walked.id, scheduled_for, walked.job_id, namespace, pool, coalesce(job.unique_name, false) as recurring
    from walked left join lateral (select unique_name from jobs where jobs.id = walked.job_id offset 0) as job on true
    where state in ('queued', 'waiting') and started_at is null and origin not in ('backfill', 'task')
      and coalesce(reason, '') not in ('paused', 'overlap')
      and exists (select from late_rules where late_rules.job_id = walked.job_id) = %(ruled)s
    order by walked.id limit (select capacity from state)
), kept as (
    insert into late_runs (run_id, scheduled_for, job_id, namespace, pool, recurring)
    select id, scheduled_for, job_id, namespace, pool, recurring from late
    on conflict do nothing
), progress as (
    select (select count(*) from late) >= capacity as full, (select count(*) from walked) = %(limit)s as more from state
), reached as (
    select case when progress.full then coalesce((select id from late order by id desc limit 1), state.walked_to)
                when progress.more then (select id from walked order by id desc limit 1)
                else greatest(state.walked_to, state.until) end as to
    from progress, state
)
update observer_state
set walked_to = case when %(ruled)s then observer_state.walked_to else reached.to end,
    ruled_to = case when %(ruled)s then reached.to else ruled_to end
from progress, reached
returning progress.more and not progress.full
