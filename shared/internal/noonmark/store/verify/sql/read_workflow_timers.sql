-- Finds those of the runs that a timer of workflows is about: the run of a task has ended, or a workflow run is to be looked at.
select distinct run_id::text from timers
where job_id = any (%(jobs)s::uuid[]) and kind = 5 and run_id = any (%(ids)s::uuid[])
