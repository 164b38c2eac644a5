-- Skips queued runs whose start deadline passed before a worker could start them: those that are still queued under the fence
-- of the message that the worker has. Fences are passed as one JSON object by run id, see `finish_detailed`.
update runs
set state = 'skipped', reason = 'start_deadline', finished_at = noonmark_now(), fence = fence + 1
where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
  and fence = (%(fences)s::jsonb ->> id::text)::int
  and state = 'queued' and started_at is null and start_by < noonmark_now()
returning id, scheduled_for, job_id, job_version, origin, namespace, lane, pool, shard, attempt, fence, state, reason,
          started_at, finished_at, error, holds_slot
