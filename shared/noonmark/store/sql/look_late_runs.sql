-- Walks the ledger in the order of the runs' ids, up to those that were made so long ago that they should have started, and
-- keeps those that have not. Each run is walked past once; held ones are not meant to start. Tells whether there is more.
with state as (
    select walked_to,
           (lpad(to_hex((extract(epoch from noonmark_now() - make_interval(secs => %(late_after)s)) * 1000)::bigint), 12, '0')
            || repeat('0', 20))::uuid as until
    from observer_state
), walked as materialized (
    select made.* from state, noonmark_runs_made(walked_to, until, %(limit)s) as made
), kept as (
    insert into late_runs (run_id, scheduled_for, job_id, namespace, pool, recurring)
    select walked.id, scheduled_for, walked.job_id, namespace, pool, coalesce(job.unique_name, false)
    from walked left join lateral (select unique_name from jobs where jobs.id = walked.job_id offset 0) as job on true
    where state in ('queued', 'waiting') and started_at is null and origin <> 'backfill'
      and coalesce(reason, '') not in ('paused', 'overlap')
      and not exists (select from late_rules where late_rules.job_id = walked.job_id)
    limit greatest(0, %(room)s - (select count(*) from late_runs))
    on conflict do nothing
)
update observer_state
set walked_to = case when (select count(*) from walked) = %(limit)s then (select id from walked order by id desc limit 1)
                     else greatest(walked_to, (select until from state)) end
returning (select count(*) from walked) = %(limit)s
