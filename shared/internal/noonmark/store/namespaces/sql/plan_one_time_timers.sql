-- Has the one-time instants of jobs planned from now on, instead of claimed in SQL, which does not look at caps.
update timers set kind = 1
where ctid = any (array(
    select mine.ctid
    from unnest(%(ids)b::uuid[]) as wanted (id),
         lateral (select ctid from timers where job_id = wanted.id and kind = 0 for update) as mine
))
