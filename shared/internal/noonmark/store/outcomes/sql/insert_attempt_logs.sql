-- Stores what an attempt wrote, whatever its outcome. Safe to repeat after a lost reply.
insert into attempt_logs (run_id, scheduled_for, fence, attempt, stdout, stderr, log, dropped, written_at)
select run_id, scheduled_for, fence, attempt, stdout, stderr, log, dropped, noonmark_now()
from unnest(%(run_ids)b::uuid[], %(scheduled_for)b::timestamptz[], %(fences)b::int[], %(attempts)b::int[],
            %(stdouts)b::text[], %(stderrs)b::text[], %(logs)b::text[], %(dropped)b::bigint[])
     as u (run_id, scheduled_for, fence, attempt, stdout, stderr, log, dropped)
on conflict do nothing
