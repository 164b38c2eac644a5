-- Deletes the retries of jobs that are paused or cancelled. A retry that was inserted after the timers were locked (a run
-- failed just now) may be locked by a claim: it is left to that claim, which checks the job and the run.
delete from timers
where ctid = any (array(
    select retry.ctid
    from unnest(%(ids)b::uuid[]) as wanted (id),
         lateral (select ctid from timers where job_id = wanted.id and kind = 2 for update skip locked) as retry
))
