-- How many runs the timer of a job with `max_runs` has left; no row if it has no timer.
select runs_left from timers where job_id = %(job_id)s and kind in (1, 3) and runs_left is not null
