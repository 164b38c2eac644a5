-- Drops the retries of jobs that are paused or cancelled. One that came after the timers were locked (a run failed just
-- now) may be in a claim's hands: it is left to it, which looks at the job, and at the run.
delete from timers
where ctid = any (array(
    select retry.ctid
    from unnest(%(ids)b::uuid[]) as wanted (id),
         lateral (select ctid from timers where job_id = wanted.id and kind = 2 for update skip locked) as retry
))
