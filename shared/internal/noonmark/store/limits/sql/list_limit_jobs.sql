-- Lists jobs that name a limit and may still run: reads all jobs once, when an operator deletes a limit.
select jobs.id, jobs.name
from jobs
where namespace = %(namespace)s and policy -> 'limits' @> jsonb_build_array(jsonb_build_array(%(name)s::text))
  and state <> 'cancelled'
  and (state = 'paused'
       or exists (select from timers where timers.job_id = jobs.id)
       or exists (select from runs where runs.job_id = jobs.id
                                         and state in ('waiting', 'queued', 'running', 'retrying', 'cancelling')))
order by jobs.id limit %(limit)s
