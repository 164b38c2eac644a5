-- Jobs that had a run die recently, and when the latest one died: an index scan that usually finds nothing.
select job_id, max(died_at) from dead_letters where died_at > %(since)s group by job_id
