-- Lets the planner handle one-time instants of jobs from now on, instead of the claim in SQL, which does not check caps.
update timers set kind = 1
where ctid = any (array(
    select mine.ctid
    from unnest(%(ids)b::uuid[]) as wanted (id),
         lateral (select ctid from timers where job_id = wanted.id and kind = 0 for update) as mine
))
