-- Queues runs that have capacity now, in the order given, which is the order of their messages: wait row, state and outbox
-- row change together. A run that was paused, cancelled or skipped since it was read is left alone.
with promoted as (
    update runs
    set state = 'queued', reason = null, fence = fence + 1, queued_at = noonmark_now(), owner = null, epoch = null,
        holds_slot = holds_slot or id = any (%(holders)b::uuid[])
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
      and state = 'waiting' and reason in ('overlap', 'limit', 'fairness')
    returning id, scheduled_for, job_id, job_version, fence, shard, lane, namespace, pool
), deleted_waits as (
    delete from waits where run_id = any (array(select id from promoted))
), enqueued as (
    insert into outbox (slice, lane, created_at, run_id, job_id, scheduled_for, fence, job_version, namespace, pool)
    select shard, lane, noonmark_now(), id, job_id, scheduled_for, fence, job_version, namespace, pool
    from promoted join unnest(%(ids)b::uuid[]) with ordinality as wanted (run_id, place) on wanted.run_id = promoted.id
    order by place
)
select id, lane from promoted
