-- The next instant of a job; runs have timers of their own.
select scheduled_for, fire_at, after_at, kind from timers
where job_id = %(job_id)s and kind in (0, 1, 3) order by fire_at limit 1
