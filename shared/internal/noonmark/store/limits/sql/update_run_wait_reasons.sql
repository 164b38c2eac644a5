-- Shows in the ledger what waiting runs wait for now, and that they hold the overlap slot where they have just got it.
-- Before their rows in `waits` change, which is the order of pauses. Returned are those that still wait for room.
update runs
set reason = %(reason)s, holds_slot = holds_slot or %(slotted)s
where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
  and state = 'waiting' and reason in ('overlap', 'limit', 'fairness')
returning id
