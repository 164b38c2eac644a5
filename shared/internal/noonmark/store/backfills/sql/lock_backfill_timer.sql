-- Second lock of a step: the timer of the job's schedule, so that no claim gives instants a verdict meanwhile, and
-- how far it has come. Retries have timers of their own, perhaps many, which are nobody's business here.
select scheduled_for, fire_at from timers where job_id = %(job_id)s and kind <> 2 order by scheduled_for for update
