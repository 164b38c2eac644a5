-- Jobs of which a run died lately, and when the latest did: one look at an index, which finds nothing most of the time.
select job_id, max(died_at) from dead_letters where died_at > %(since)s group by job_id
