-- Records outcomes that have a result, an error or a retry, each with its own fence. They are passed as one JSON object by
-- run id, [fence, state, reason, result, error, attempts given back], and are looked up per row: a join would be planned by
-- the estimated number of runs that pass the guards, and on a day without statistics it would read the whole day for every
-- outcome. `cancelled` applies to runs that were asked to stop, which keep their reason, or whose handler cancelled them.
update runs
set (state, reason, finished_at, result, error, attempt) = (
    select case runs.state when 'cancelling' then 'cancelled' else done ->> 1 end,
           case when runs.state = 'running' then done ->> 2
                else coalesce(runs.reason, case when done ->> 1 = 'cancelled' then done ->> 2 end) end,
           case when runs.state = 'running' and done ->> 1 = 'retrying' then null else noonmark_now() end,
           (done ->> 3)::json,
           done ->> 4,
           greatest(runs.attempt - (done ->> 5)::int, 0)
    from (select %(outcomes)s::jsonb -> runs.id::text) as passed (done)
)
where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
  and fence = (%(outcomes)s::jsonb -> id::text ->> 0)::int and owner = %(worker)s and epoch = %(epoch)s
  and (state = 'cancelling'
       or (state = 'running' and (%(outcomes)s::jsonb -> id::text ->> 1 <> 'cancelled'
                                  or %(outcomes)s::jsonb -> id::text ->> 2 = 'by_handler')))
returning id, fence, state, finished_at
