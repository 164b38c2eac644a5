-- Deletes the timers of cancelled runs; they were locked before the runs. A timer that was written after that (a run failed
-- just now) may be locked by a claim: waiting for it here would be a deadlock, and the claim checks the state of the run.
delete from timers
where ctid = any (array(
    select found.ctid
    from unnest(%(job_ids)b::uuid[]) as wanted (id),
         lateral (
             select ctid from timers where job_id = wanted.id and run_id = any (%(ids)b::uuid[]) for update skip locked
         ) as found
))
