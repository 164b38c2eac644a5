-- Gives zoned timers the instants that new zone data put them at. The guard repeats what was read: a timer that a pause
-- or a cancel got at in between is left as that made it, but for its instant, and what waits for a resume goes on waiting.
update timers
set scheduled_for = moved.at,
    fire_at = case when timers.fire_at = %(never)s and not moved.wakes then timers.fire_at
                   else coalesce(moved.fire_at, noonmark_now()) end
from unnest(%(jobs)b::uuid[], %(was)b::timestamptz[], %(after_at)b::timestamptz[], %(at)b::timestamptz[],
            %(fire_at)b::timestamptz[], %(wakes)b::bool[]) as moved (job_id, was, after_at, at, fire_at, wakes)
where timers.job_id = any (array(select unnest(%(jobs)b::uuid[]))) and timers.job_id = moved.job_id and timers.kind = 3
  and timers.scheduled_for = moved.was and timers.after_at = moved.after_at
