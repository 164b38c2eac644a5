-- Reads the runs of a step that have not changed for a while: ended, or unfinished, before `settled`. Also runs that were last
-- changed later than `soon`, which is in the future. Rows are compared by whether there is a result, and the beginning of an
-- error; events by their digests, which are computed on request. So results and long errors are not transferred.
select id::text, job_id::text as job, job_version as version, namespace, scheduled_for, last_scheduled_for, origin,
       request_id as request, state, reason, attempt, fence, lane, queued_at, started_at, finished_at, losses,
       case when result is not null then 'null' end as result, left(error, %(error_chars)s::int) as error,
       pool, owner, epoch, start_by, instants, shard, zone_data, holds_slot,
       case when %(digests)s then coalesce(encode(sha256(convert_to(result::text, 'UTF8')), 'hex'), '') end as result_digest,
       case when %(digests)s then coalesce(encode(sha256(convert_to(error, 'UTF8')), 'hex'), '') end as error_digest,
       due_at
from runs
where scheduled_for >= %(since)s and scheduled_for < %(until)s and id > %(after)s and id <= %(last)s
  and coalesce(finished_at, greatest(queued_at, started_at, scheduled_for)) not between %(settled)s and %(soon)s
  and (%(namespaces)s::text[] is null or namespace = any (%(namespaces)s))
