-- Records outcomes that carry a result, an error or a retry, each with its own fence. They come as one JSON
-- object by run id, [fence, state, reason, result, error, attempts given back], and are looked up per row: a
-- join with them is planned by how many runs the guards seem to leave, and on a day without statistics that
-- reads all of the day for every outcome. `cancelled` is for runs that somebody asked to stop, whose reason
-- stays, or whose handler itself ended them.
update runs
set (state, reason, finished_at, result, error, attempt) = (
    select case runs.state when 'cancelling' then 'cancelled' else done ->> 1 end,
           case when runs.state = 'running' then done ->> 2
                else coalesce(runs.reason, case when done ->> 1 = 'cancelled' then done ->> 2 end) end,
           case when runs.state = 'running' and done ->> 1 = 'retrying' then null else noonmark_now() end,
           (done ->> 3)::json,
           done ->> 4,
           greatest(runs.attempt - (done ->> 5)::int, 0)
    from (select %(outcomes)s::jsonb -> runs.id::text) as given (done)
)
where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
  and fence = (%(outcomes)s::jsonb -> id::text ->> 0)::int and owner = %(worker)s and epoch = %(epoch)s
  and (state = 'cancelling'
       or (state = 'running' and (%(outcomes)s::jsonb -> id::text ->> 1 <> 'cancelled'
                                  or %(outcomes)s::jsonb -> id::text ->> 2 = 'by_handler')))
returning id, fence, state, finished_at
