-- Finds queued runs of a step whose message is provably gone: it is not in the outbox, and the group of its topic has passed
-- it. The same proof as in `resend_vanished`.
select runs.id::text
from runs
join unnest(%(pools)s::text[], %(lanes)s::smallint[], %(passed_until)s::timestamptz[]) as passed (pool, lane, until)
    on runs.pool = passed.pool and runs.lane = passed.lane and runs.queued_at < passed.until
where id = any (%(ids)s::uuid[]) and scheduled_for >= %(since)s and scheduled_for < %(until)s and state = 'queued'
  and not exists (select from outbox where outbox.slice = runs.shard and outbox.lane = runs.lane
                                       and outbox.run_id = runs.id)
limit 1000
