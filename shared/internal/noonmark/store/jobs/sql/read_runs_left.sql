-- How many runs the timer of a limited job still has; no row where it has none.
select runs_left from timers where job_id = %(job_id)s and kind in (1, 3) and runs_left is not null
