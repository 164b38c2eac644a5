-- Records in the ledger what waiting runs wait for now, and that they hold the overlap slot if they have just acquired it.
-- Sent before their rows in `waits` change, in the lock order of pauses. Returns the runs that still wait for capacity.
update runs
set reason = %(reason)s, holds_slot = holds_slot or %(slotted)s
where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
  and state = 'waiting' and reason in ('overlap', 'limit', 'fairness')
returning id
