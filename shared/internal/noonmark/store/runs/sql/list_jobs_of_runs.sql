-- The jobs of runs that a cancel means, in the order of ids: by these their timers are found.
select distinct job_id
from runs
where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
order by job_id
