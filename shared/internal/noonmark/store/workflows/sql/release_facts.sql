-- Lets go the timers of workflow runs that were parked while the runs were held. Their job is found by its index; a timer that
-- somebody has locked now is being dealt with.
update timers set fire_at = noonmark_now()
where ctid = any (array(
    select timers.ctid
    from unnest(%(ids)b::uuid[], %(job_ids)b::uuid[]) as held (run_id, job_id)
    join timers on timers.job_id = held.job_id and timers.kind = 5 and timers.fire_at = %(never)s
    join lateral (
        select origin, request_id from runs where id = timers.run_id and scheduled_for = timers.scheduled_for offset 0
    ) as run on true
    where timers.run_id = held.run_id or (run.origin = 'task' and split_part(run.request_id, '/', 1) = held.run_id::text)
    for update of timers skip locked
))
