-- Third lock of a redrive or a discard: the dead runs that are meant, in the order of ids, as two of them may mean the same.
select id, scheduled_for, job_id
from runs
where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s and state = 'dead'
order by id
for update
