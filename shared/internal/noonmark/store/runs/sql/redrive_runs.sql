-- Redrives dead runs: queued with their outbox row, or waiting for the reason that is passed by run id. The fence rises, so
-- that older messages and workers are refused; both budgets are reset, and the earlier attempts stay in `attempts`. A run
-- that waits for capacity joins the queue of runs that no promotion pass has checked yet.
with redriven as (
    update runs
    set state = case when %(waits)s::jsonb ? id::text then 'waiting' else 'queued' end,
        reason = %(waits)s::jsonb ->> id::text,
        fence = fence + 1, attempt = 0, losses = 0, owner = null, epoch = null, error = null,
        finished_at = null, queued_at = noonmark_now(), holds_slot = id = any (%(holders)b::uuid[])
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s and state = 'dead'
    returning id, scheduled_for, job_id, job_version, origin, namespace, lane, pool, shard, attempt, fence, state, reason,
              started_at, finished_at, error, holds_slot
), enqueued as (
    insert into outbox (slice, lane, created_at, run_id, job_id, scheduled_for, fence, job_version, namespace, pool)
    select shard, lane, noonmark_now(), id, job_id, scheduled_for, fence, job_version, namespace, pool
    from redriven where state = 'queued'
), waiting as (
    insert into waits (run_id, scheduled_for, job_id, reason, since, key, lane, namespace)
    select id, scheduled_for, job_id, reason, noonmark_now(), case when reason <> 'paused' then %(key)s::uuid end, lane, namespace
    from redriven where state = 'waiting'
), deleted_dead_letters as (
    delete from dead_letters where run_id in (select id from redriven)
)
select * from redriven
