-- Stores what an attempt wrote, whatever its outcome, in place of what was stored while it ran. Safe to repeat after a lost
-- reply.
insert into attempt_logs (run_id, scheduled_for, fence, attempt, stdout, stderr, log, dropped, written_at,
                          stdout_end, stderr_end, log_end)
select run_id, scheduled_for, fence, attempt, stdout, stderr, log, dropped, noonmark_now(), stdout_end, stderr_end, log_end
from unnest(%(run_ids)b::uuid[], %(scheduled_for)b::timestamptz[], %(fences)b::int[], %(attempts)b::int[],
            %(stdouts)b::text[], %(stderrs)b::text[], %(logs)b::text[], %(dropped)b::bigint[],
            %(stdout_ends)b::bigint[], %(stderr_ends)b::bigint[], %(log_ends)b::bigint[])
     as u (run_id, scheduled_for, fence, attempt, stdout, stderr, log, dropped, stdout_end, stderr_end, log_end)
on conflict (run_id, fence) do update
set stdout = excluded.stdout, stderr = excluded.stderr, log = excluded.log, dropped = excluded.dropped,
    written_at = excluded.written_at, stdout_end = excluded.stdout_end, stderr_end = excluded.stderr_end,
    log_end = excluded.log_end
