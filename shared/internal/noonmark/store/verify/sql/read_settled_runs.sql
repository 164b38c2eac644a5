-- Reads the runs of a step that have not changed for a while: ended, or unfinished, before `settled`. Only whether there is
-- a result, and the beginning of an error, are compared with other rows, so results and long errors are not read.
select id::text, job_id::text as job, job_version as version, namespace, scheduled_for, last_scheduled_for, origin,
       request_id as request, state, reason, attempt, fence, lane, queued_at, started_at, finished_at, losses,
       case when result is not null then 'null' end as result, left(error, 100) as error,
       pool, owner, epoch, start_by, instants
from runs
where scheduled_for >= %(since)s and scheduled_for < %(until)s and id > %(after)s and id <= %(last)s
  and coalesce(finished_at, greatest(queued_at, started_at, scheduled_for)) < %(settled)s
  and (%(namespaces)s::text[] is null or namespace = any (%(namespaces)s))
