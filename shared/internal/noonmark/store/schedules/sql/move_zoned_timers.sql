-- Moves zoned timers to their instants by the new zone data. The guard repeats what was read: a timer that a pause or a
-- cancel changed in between keeps that change, except for its instant, and a timer that waits for a resume keeps waiting.
update timers
set scheduled_for = moved.at,
    fire_at = case when timers.fire_at = %(never)s and not moved.wakes then timers.fire_at
                   else coalesce(moved.fire_at, noonmark_now()) end
from unnest(%(jobs)b::uuid[], %(was)b::timestamptz[], %(after_at)b::timestamptz[], %(at)b::timestamptz[],
            %(fire_at)b::timestamptz[], %(wakes)b::bool[]) as moved (job_id, was, after_at, at, fire_at, wakes)
where timers.job_id = any (array(select unnest(%(jobs)b::uuid[]))) and timers.job_id = moved.job_id and timers.kind = 3
  and timers.scheduled_for = moved.was and timers.after_at = moved.after_at
