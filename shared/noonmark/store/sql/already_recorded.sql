-- After a COMMIT of unknown result: which of these outcomes are already in the ledger under our own fence.
select runs.id
from runs
join unnest(%(ids)b::uuid[], %(fences)b::int[]) as mine (id, fence) on runs.id = mine.id and runs.fence = mine.fence
where runs.scheduled_for between %(first)s and %(last)s
  and runs.owner = %(worker)s and runs.epoch = %(epoch)s and runs.state not in ('running', 'cancelling')
