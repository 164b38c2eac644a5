-- How many jobs have instants that came due while they were paused. A timer whose next instant must be computed again is at
-- the last settled one: whether later ones came due is unknown, so it is not counted.
select count(*)
from unnest(%(ids)b::uuid[]) as wanted (id),
     lateral (select from timers
              where job_id = wanted.id and kind in (1, 3) and fire_at = %(never)s and scheduled_for <= noonmark_now()
                and after_at is distinct from scheduled_for
              offset 0) as paused
