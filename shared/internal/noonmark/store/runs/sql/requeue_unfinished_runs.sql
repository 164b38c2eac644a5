-- A worker gives back runs that it owns but will not finish (drain) or does not know (a lost reply). The attempt is not used
-- up; the fence rises, so that a handler of it that still runs can write nothing. A run that the worker has started again
-- since, under a higher fence, is left alone. Fences are passed as one JSON object by run id, see `finish_detailed`.
with requeued as (
    update runs
    set state = 'queued', fence = fence + 1, attempt = greatest(attempt - 1, 0), owner = null, epoch = null,
        queued_at = noonmark_now()
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
      and fence = (%(fences)s::jsonb ->> id::text)::int
      and owner = %(worker)s and epoch = %(epoch)s and state = 'running'
    returning id, scheduled_for, job_id, job_version, fence, attempt, started_at, shard, lane, namespace, pool
), enqueued as (
    insert into outbox (slice, lane, created_at, run_id, job_id, scheduled_for, fence, job_version, namespace, pool)
    select shard, lane, noonmark_now(), id, job_id, scheduled_for, fence, job_version, namespace, pool from requeued
), recorded as (
    insert into attempts (run_id, scheduled_for, fence, attempt, worker, outcome, started_at, finished_at)
    select id, scheduled_for, fence - 1, attempt + 1, %(worker)s, 'handed_back', started_at, noonmark_now() from requeued
    on conflict do nothing
)
select id, scheduled_for, job_id, shard from requeued
