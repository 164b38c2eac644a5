-- A run by its id, with its state as an open workflow run.
select run.id, run.job_id, run.job_version, run.scheduled_for, run.namespace, run.pool, run.origin, run.request_id, run.state,
       run.reason, run.error, open.generation, open.progress, open.choices, open.opened_at, open.held_at, open.stopping
from runs as run
left join workflows as open on open.run_id = run.id and run.origin <> 'task'
where run.id = %(run_id)s
