-- A paused job's one-time instants need planning: the claim in SQL does not look at the job.
update timers set kind = 1 where job_id = %(job_id)s and kind = 0
