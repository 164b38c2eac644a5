-- The tasks of a workflow run by number, each with its newest run, or with its run of one generation. Runs are found by the
-- ledger's unique key. A task of an open workflow run that is undecided again, after a redrive, has no run. The tasks of a job
-- that was deleted are gone: then only runs are left. `place` is 0 for tasks that failed themselves, if those are wanted first.
with found as materialized (
    select id, split_part(request_id, '/', 2)::int as task_no, split_part(request_id, '/', 4)::int as generation, state, reason,
           attempt, due_at, queued_at, started_at, finished_at, error
    from runs
    where job_id = %(job_id)s and scheduled_for = %(scheduled_for)s and origin = 'task'
      and split_part(request_id, '/', 1) = %(workflow_id)s::text
), chosen as (
    select distinct on (task_no) * from found
    where %(generation)s::int is null or generation = %(generation)s
    order by task_no, generation desc
), decided as (
    select * from chosen
    where case when %(generation)s::int is null and task_no < length(%(progress)s::bytea)
               then get_byte(%(progress)s::bytea, task_no) > 0 else true end
), tasks as (
    select task_no, key, kind from workflow_tasks where job_id = %(job_id)s and version = %(version)s
), shown as (
    select coalesce(tasks.task_no, run.task_no) as no, tasks.key, tasks.kind, coalesce(run.state, 'undecided') as state,
           run.reason, run.generation, run.id as run_id, run.attempt, run.due_at, run.queued_at, run.started_at, run.finished_at,
           left(run.error, %(error_chars)s) as error,
           case when %(failed_first)s
                 and (run.state in ('dead', 'unknown', 'discarded', 'cancelled') or run.reason = 'start_deadline')
                then 0 else 1 end as place
    from tasks full join decided as run on run.task_no = tasks.task_no
    where %(generation)s::int is null or run.id is not null
)
select * from shown
where (%(keys)s::text[] is null or key = any (%(keys)s::text[]))
  and (%(states)s::text[] is null or state = any (%(states)s::text[]))
  and (place, no) > (%(after_place)s, %(after_no)s)
order by place, no
limit %(limit)s
