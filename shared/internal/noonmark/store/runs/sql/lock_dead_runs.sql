-- Third lock of a redrive or a discard: the dead runs, in the order of ids, because two of these may lock the same runs.
select id, scheduled_for, job_id
from runs
where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s and state = 'dead'
order by id
for update
