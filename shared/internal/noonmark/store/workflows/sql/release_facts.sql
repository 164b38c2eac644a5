-- Lets go the timers of workflow runs that were parked while the runs were held. The timers of their jobs are read by the index
-- on jobs, whatever the statistics say: any number may be parked. A timer that somebody has locked now is being dealt with.
update timers set fire_at = noonmark_now()
where ctid = any (array(
    select ctid from timers
    where ctid = any (array(
        select parked.place
        from unnest(%(ids)b::uuid[], %(job_ids)b::uuid[]) as held (run_id, job_id)
        join lateral (
            select ctid as place, run_id, scheduled_for, kind, fire_at from timers where job_id = held.job_id offset 0
        ) as parked on parked.kind = 5 and parked.fire_at = %(never)s
        join lateral (
            select origin, request_id from runs
            where id = parked.run_id and scheduled_for = parked.scheduled_for and scheduled_for between %(first)s and %(last)s
            offset 0
        ) as run on true
        where parked.run_id = held.run_id
           or (run.origin = 'task' and split_part(run.request_id, '/', 1) = held.run_id::text)
    ))
    for update skip locked
))
