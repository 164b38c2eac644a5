-- Stores progress and checkpoints of running attempts: only for runs that this worker still runs under the fence of the
-- report. The share lock keeps the run unchanged until the notes are committed, so that no later attempt can begin without
-- them. A row that is locked is just being changed and is left for the next round, so this waits for no other transaction
-- and cannot be part of a deadlock. `given` is looked up per row by run id, as in `finish_detailed`:
-- [fence, progress, message, checkpoint]. A checkpoint stays until the next one.
with owned as materialized (
    select id from runs
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
      and fence = (%(given)s::jsonb -> id::text ->> 0)::int and owner = %(worker)s and epoch = %(epoch)s
      and state = 'running'
), locked as materialized (
    select id, scheduled_for, fence from runs
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
      and fence = (%(given)s::jsonb -> id::text ->> 0)::int and owner = %(worker)s and epoch = %(epoch)s
      and state = 'running'
    order by id for share skip locked
), saved as (
    insert into run_notes (run_id, scheduled_for, fence, progress, message, checkpoint, written_at)
    select id, scheduled_for, fence, (%(given)s::jsonb -> id::text ->> 1)::float8, %(given)s::jsonb -> id::text ->> 2,
           (%(given)s::jsonb -> id::text ->> 3)::json, noonmark_now()
    from locked
    on conflict (run_id) do update
    set fence = excluded.fence, progress = excluded.progress, message = excluded.message,
        checkpoint = coalesce(excluded.checkpoint, run_notes.checkpoint), written_at = excluded.written_at
    where run_notes.fence <= excluded.fence
    returning run_id
)
select id, exists (select from saved where saved.run_id = id) from owned
