-- Stores notes that attempts reported and that are not stored yet, in the transaction of their outcomes, which has updated
-- and so locked their runs. Safe to repeat after a lost reply.
insert into run_notes (run_id, scheduled_for, fence, progress, message, checkpoint, written_at)
select run_id, scheduled_for, fence, progress, message, checkpoint::json, noonmark_now()
from unnest(%(run_ids)b::uuid[], %(scheduled_for)b::timestamptz[], %(fences)b::int[], %(progress)b::float8[],
            %(messages)b::text[], %(checkpoints)b::text[])
     as u (run_id, scheduled_for, fence, progress, message, checkpoint)
on conflict (run_id) do update
set fence = excluded.fence, progress = excluded.progress, message = excluded.message,
    checkpoint = coalesce(excluded.checkpoint, run_notes.checkpoint), written_at = excluded.written_at
where run_notes.fence <= excluded.fence
