-- Ends cancelled runs that their worker does not know: the reply to their start was lost, so nothing of them runs.
-- Fences are passed as one JSON object by run id, see `finish_detailed`.
update runs
set state = 'cancelled', finished_at = noonmark_now()
where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
  and fence = (%(fences)s::jsonb ->> id::text)::int
  and owner = %(worker)s and epoch = %(epoch)s and state = 'cancelling'
returning id, scheduled_for, job_id, job_version, origin, namespace, lane, pool, shard, attempt, fence, state, reason,
          started_at, finished_at, error, holds_slot
