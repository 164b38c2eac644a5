-- Sends queued runs again whose message is provably gone: acknowledged (no outbox row) and passed by the
-- group, or its topic was lost. Age alone proves nothing, so `passed_until` comes from measured positions.
with vanished as (
    update runs
    set fence = fence + 1, queued_at = noonmark_now()
    where scheduled_for >= %(since)s and state = 'queued' and pool = %(pool)s and lane = %(lane)s
      and queued_at < %(passed_until)s
      and not exists (select from outbox where outbox.slice = runs.shard and outbox.lane = runs.lane
                                           and outbox.run_id = runs.id)
    returning id, scheduled_for, job_id, job_version, fence, shard, lane, namespace, pool
), told as (
    insert into outbox (slice, lane, created_at, run_id, job_id, scheduled_for, fence, job_version, namespace, pool)
    select shard, lane, noonmark_now(), id, job_id, scheduled_for, fence, job_version, namespace, pool from vanished
    returning 1
)
select count(*) as resent from told
