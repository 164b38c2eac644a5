-- Requeues runs that have waited long enough: a retry that is due, a parked message, a resumed job.
-- The fence rises each time a run is queued, so messages and workers of an earlier time are refused.
with requeued as (
    update runs
    set state = 'queued', reason = null, fence = fence + 1, queued_at = noonmark_now(), owner = null, epoch = null
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
      and (state = 'retrying' or (state = 'waiting' and reason = %(reason)s))
    returning id, scheduled_for, job_id, job_version, fence, shard, lane, namespace, pool
), deleted_waits as (
    delete from waits where run_id in (select id from requeued)
), enqueued as (
    insert into outbox (slice, lane, created_at, run_id, job_id, scheduled_for, fence, job_version, namespace, pool)
    select shard, lane, noonmark_now(), id, job_id, scheduled_for, fence, job_version, namespace, pool from requeued
    returning 1
)
select count(*) as enqueued from enqueued
