-- Ends the attempt of runs whose worker is gone: queued again with a higher fence while the budget for
-- losses lasts, dead after it, cancelled where that had been asked. The retry budget is not touched.
-- A run of these batches that the same worker started anew since then belongs to its newer batch.
update runs
set state = case when state = 'cancelling' then 'cancelled'
                 when losses >= %(loss_budget)s then 'dead'
                 else 'queued' end,
    reason = case when state = 'running' and losses >= %(loss_budget)s then 'lost' end,
    error = case when state = 'running' and losses >= %(loss_budget)s
                 then 'the worker vanished ' || losses + 1 || ' times while it ran this' end,
    finished_at = case when state = 'cancelling' or losses >= %(loss_budget)s then noonmark_now() end,
    queued_at = noonmark_now(),
    losses = losses + 1,
    attempt = greatest(attempt - 1, 0),
    fence = fence + 1,
    owner = null,
    epoch = null
where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
  and owner = any (%(workers)b::bigint[]) and started_at = any (%(started_at)b::timestamptz[])
  and state in ('running', 'cancelling')
returning id, scheduled_for, job_id, job_version, origin, namespace, lane, pool, shard, attempt, fence, state, reason,
          started_at, finished_at, error, holds_slot
