-- Queues runs again whose wait is over: a retry that is due, a parked message, a resumed job.
-- The fence rises with every queueing, so messages and workers of an earlier one are refused.
with again as (
    update runs
    set state = 'queued', reason = null, fence = fence + 1, queued_at = noonmark_now(), owner = null, epoch = null
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
      and (state = 'retrying' or (state = 'waiting' and reason = %(reason)s))
    returning id, scheduled_for, job_id, job_version, fence, shard, lane, namespace, pool
), gone as (
    delete from waits where run_id in (select id from again)
), told as (
    insert into outbox (slice, lane, created_at, run_id, job_id, scheduled_for, fence, job_version, namespace, pool)
    select shard, lane, noonmark_now(), id, job_id, scheduled_for, fence, job_version, namespace, pool from again
    returning 1
)
select count(*) as told from told
