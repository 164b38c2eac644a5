-- Drops the timers of runs that were cancelled; they were locked before the runs. One that came after that (a run failed
-- just now) may be in a claim's hands: to wait for it here would be a deadlock, and the claim looks at the run.
delete from timers
where ctid = any (array(
    select own.ctid
    from unnest(%(job_ids)b::uuid[]) as wanted (id),
         lateral (
             select ctid from timers where job_id = wanted.id and run_id = any (%(ids)b::uuid[]) for update skip locked
         ) as own
))
