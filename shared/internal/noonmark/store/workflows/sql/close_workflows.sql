-- Ends workflow runs: the verdict follows from those of their tasks. One that was asked to stop is cancelled, with its reason.
-- Their timers and states go with them. A timer that another trigger holds is deleted by its pass, which finds no workflow.
with ended as (
    update runs
    set (state, reason, error, result) = (
            select case runs.state when 'cancelling' then 'cancelled' else passed ->> 0 end,
                   case runs.state when 'cancelling' then runs.reason else passed ->> 1 end,
                   case runs.state when 'cancelling' then null else passed ->> 2 end,
                   case runs.state when 'cancelling' then null else (passed ->> 3)::json end
            from (select %(verdicts)s::jsonb -> runs.id::text) as given (passed)
        ),
        finished_at = noonmark_now()
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
      and state in ('running', 'cancelling') and owner = -1
    returning id, scheduled_for, job_id, job_version, origin, namespace, lane, pool, shard, attempt, fence, state, reason,
              started_at, finished_at, error, holds_slot
), deleted_states as (
    delete from workflows where run_id in (select id from ended)
), deleted_timers as (
    delete from timers
    where ctid = any (array(
        select ctid from timers
        where ctid = any (array(
            select mine.place
            from (select distinct job_id from ended) as job,
                 lateral (select ctid as place, run_id, kind from timers where job_id = job.job_id offset 0) as mine
            where mine.kind = 5
              and (mine.run_id in (select id from ended)
                   or mine.run_id in (select task.id from ended join runs as task
                                      on task.job_id = ended.job_id and task.scheduled_for = ended.scheduled_for
                                         and task.scheduled_for between %(first)s and %(last)s and task.origin = 'task'
                                         and split_part(task.request_id, '/', 1) = ended.id::text))
        ))
        for update skip locked
    ))
)
select * from ended
