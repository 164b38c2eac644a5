-- Second lock of a step: the timer of the job's schedule, so that no claim gives instants a verdict meanwhile, and how far
-- the schedule is planned. Retries have their own timers, perhaps many, which do not matter here.
select scheduled_for, fire_at from timers where job_id = %(job_id)s and kind <> 2 order by scheduled_for for update
