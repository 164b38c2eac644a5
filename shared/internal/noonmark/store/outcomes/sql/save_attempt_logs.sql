-- Stores the output of running attempts: only for runs that this worker still runs under the fence of the attempt. The share
-- lock keeps the run unchanged until the output is committed, so this never replaces the output of an outcome. A row that is
-- locked is just being changed and is left for the next round, so this waits for no other transaction and cannot be part of a
-- deadlock. `given` is looked up per row by run id, as in `save_run_notes`: [fence, dropped, ends of stdout, stderr and log,
-- texts of stdout, stderr and log]. A text that is null is stored already. The last output of a run that is handed back can be
-- written before output that was read earlier: an end never becomes smaller.
with owned as materialized (
    select id from runs
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
      and fence = (%(given)s::jsonb -> id::text ->> 0)::int and owner = %(worker)s and epoch = %(epoch)s
      and state in ('running', 'cancelling')
), locked as materialized (
    select id, scheduled_for, fence, attempt from runs
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
      and fence = (%(given)s::jsonb -> id::text ->> 0)::int and owner = %(worker)s and epoch = %(epoch)s
      and state in ('running', 'cancelling')
    order by id for share skip locked
), saved as (
    insert into attempt_logs (run_id, scheduled_for, fence, attempt, stdout, stderr, log, dropped, written_at,
                              stdout_end, stderr_end, log_end)
    select id, scheduled_for, fence, attempt, coalesce(%(given)s::jsonb -> id::text ->> 5, ''),
           coalesce(%(given)s::jsonb -> id::text ->> 6, ''), coalesce(%(given)s::jsonb -> id::text ->> 7, ''),
           (%(given)s::jsonb -> id::text ->> 1)::bigint, noonmark_now(), (%(given)s::jsonb -> id::text ->> 2)::bigint,
           (%(given)s::jsonb -> id::text ->> 3)::bigint, (%(given)s::jsonb -> id::text ->> 4)::bigint
    from locked
    on conflict (run_id, fence) do update
    set stdout = coalesce(%(given)s::jsonb -> attempt_logs.run_id::text ->> 5, attempt_logs.stdout),
        stderr = coalesce(%(given)s::jsonb -> attempt_logs.run_id::text ->> 6, attempt_logs.stderr),
        log = coalesce(%(given)s::jsonb -> attempt_logs.run_id::text ->> 7, attempt_logs.log),
        dropped = excluded.dropped, written_at = excluded.written_at, stdout_end = excluded.stdout_end,
        stderr_end = excluded.stderr_end, log_end = excluded.log_end
    where attempt_logs.stdout_end <= excluded.stdout_end and attempt_logs.stderr_end <= excluded.stderr_end
      and attempt_logs.log_end <= excluded.log_end
    returning run_id
)
select id, exists (select from saved where saved.run_id = id) from owned
