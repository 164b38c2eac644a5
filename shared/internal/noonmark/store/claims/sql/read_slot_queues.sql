-- For jobs whose runs queue for their slot: the run that holds it, and the runs that wait without it, newest first. Runs of tasks
-- wait for something else: the slot is that of their workflow run.
select wanted.id, holder.run_id, waiting.run_id, waiting.scheduled_for
from unnest(%(ids)b::uuid[]) as wanted (id)
     left join lateral (select run_id from slots where key = wanted.id offset 0) as holder on true
     left join lateral (
         select run_id, scheduled_for from waits
         where job_id = wanted.id and reason <> 'undeliverable' and run_id is distinct from holder.run_id
           and exists (select from runs where runs.id = waits.run_id and runs.scheduled_for = waits.scheduled_for
                                              and runs.origin <> 'task' offset 0)
         order by since desc, run_id desc offset 0
     ) as waiting on true
