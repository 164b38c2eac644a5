-- The next instant of a job; retries of runs have separate timers.
select scheduled_for, fire_at, after_at, kind from timers
where job_id = %(job_id)s and kind in (0, 1, 3) order by fire_at limit 1
