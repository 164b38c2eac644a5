-- Lists the jobs of runs, in the order of ids: the timers of the runs are found by job.
select distinct job_id
from runs
where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
order by job_id
