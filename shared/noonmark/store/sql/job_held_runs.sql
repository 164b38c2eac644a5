-- Runs that wait because their job was paused.
select run_id, scheduled_for from waits where job_id = %(job_id)s and reason = 'paused'
