-- Runs that wait because their job was paused.
select held.run_id, held.scheduled_for, wanted.id
from unnest(%(ids)b::uuid[]) as wanted (id),
     lateral (select run_id, scheduled_for from waits where job_id = wanted.id and reason = 'paused' offset 0) as held
