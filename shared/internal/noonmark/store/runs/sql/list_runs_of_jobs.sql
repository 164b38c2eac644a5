-- Returns those of these runs that belong to some jobs.
select id from runs
where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s and job_id = any (%(job_ids)b::uuid[])
