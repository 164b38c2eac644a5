-- Drops the timers of runs that were cancelled; they were locked before the runs.
delete from timers
where ctid = any (array(
    select own.ctid
    from unnest(%(job_ids)b::uuid[]) as wanted (id),
         lateral (select ctid from timers where job_id = wanted.id and run_id = any (%(ids)b::uuid[]) for update) as own
))
