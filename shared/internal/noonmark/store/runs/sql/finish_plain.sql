-- Records runs that succeeded without a result, all of one fence number. Guarded by fence, owner and epoch: a row that is
-- not returned belongs to another worker by now, and nothing else is written for it.
update runs
set state = case state when 'cancelling' then 'cancelled' else 'succeeded' end, finished_at = noonmark_now()
where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
  and fence = %(fence)s and owner = %(worker)s and epoch = %(epoch)s and state in ('running', 'cancelling')
returning id, fence, state, finished_at
