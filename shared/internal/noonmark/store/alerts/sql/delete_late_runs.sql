-- Deletes late runs that have started, finished or been paused since.
delete from late_runs
where run_id = any (array(
    select late.run_id
    from late_runs as late
    left join lateral (
        select true as waits from runs
        where id = late.run_id and scheduled_for = late.scheduled_for and state in ('queued', 'waiting') and started_at is null
          and coalesce(reason, '') not in ('paused', 'overlap')
        offset 0
    ) as run on true
    where run.waits is null))
