-- Drops the retries of a job that is paused or cancelled. One that came after the timers were locked (a run
-- failed just now) may be in a claim's hands: it is left to it, for its run has moved on and is not queued.
delete from timers
where ctid = any (array(
    select ctid from timers where job_id = %(job_id)s and kind = 2 for update skip locked
))
