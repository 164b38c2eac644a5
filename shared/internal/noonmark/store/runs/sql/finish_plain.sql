-- Records runs that succeeded and returned nothing, all of one fence number. Guarded by fence, owner and
-- epoch: a row that does not come back belongs to somebody else by now, and nothing is tied to it.
update runs
set state = case state when 'cancelling' then 'cancelled' else 'succeeded' end, finished_at = noonmark_now()
where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
  and fence = %(fence)s and owner = %(worker)s and epoch = %(epoch)s and state in ('running', 'cancelling')
returning id, fence, state, finished_at
