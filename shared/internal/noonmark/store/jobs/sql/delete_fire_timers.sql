-- Deletes the instants of a job that is cancelled or gets another schedule; its retries stay.
delete from timers where job_id = %(job_id)s and kind in (0, 1, 3)
returning scheduled_for, after_at, runs_left
