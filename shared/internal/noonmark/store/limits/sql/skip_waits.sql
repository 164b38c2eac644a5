-- Skips waiting runs: their start deadline has passed, or a newer instant of their job replaces them.
with ended as (
    update runs
    set state = 'skipped', reason = %(verdict)s, finished_at = noonmark_now(), fence = fence + 1
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s and state = 'waiting'
      and (%(verdict)s <> 'start_deadline'
           or (reason in ('overlap', 'limit', 'fairness') and started_at is null and start_by < noonmark_now()))
    returning id, scheduled_for, job_id, job_version, origin, namespace, lane, pool, shard, attempt, fence, state, reason,
              started_at, finished_at, error, holds_slot
), deleted_waits as (
    delete from waits where run_id = any (array(select id from ended))
)
select * from ended
