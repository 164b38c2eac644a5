-- Records outcomes that carry a result, an error or a retry, each with its own fence.
update runs
set state = case runs.state when 'cancelling' then 'cancelled' else done.state end,
    reason = case runs.state when 'cancelling' then null else done.reason end,
    finished_at = case when runs.state = 'running' and done.state = 'retrying' then null else noonmark_now() end,
    result = done.result::json,
    error = done.error
from unnest(%(ids)b::uuid[], %(fences)b::int[], %(states)b::text[], %(reasons)b::text[], %(results)b::text[],
            %(errors)b::text[])
     as done (id, fence, state, reason, result, error)
where runs.id = done.id and runs.scheduled_for between %(first)s and %(last)s
  and runs.fence = done.fence and runs.owner = %(worker)s and runs.epoch = %(epoch)s
  and runs.state in ('running', 'cancelling')
returning runs.id, runs.state, runs.finished_at
