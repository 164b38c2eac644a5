-- Skips queued runs whose start deadline passed before a worker could start them.
update runs
set state = 'skipped', reason = 'start_deadline', finished_at = noonmark_now(), fence = fence + 1
where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
  and state = 'queued' and started_at is null and start_by < noonmark_now()
returning id, scheduled_for, job_id, job_version, origin, namespace, lane, pool, shard, attempt, fence, state, reason,
          started_at, finished_at, error, holds_slot
