-- Finds queued runs of a step whose message is provably gone: it is not in the outbox, and the group of its topic has passed
-- it. The same proof as in `resend_vanished`. The outbox has no index by run, so the slices of the runs are read once.
with queued as materialized (
    select runs.id, runs.shard
    from runs
    join unnest(%(pools)s::text[], %(lanes)s::smallint[], %(passed_until)s::timestamptz[]) as passed (pool, lane, until)
        on runs.pool = passed.pool and runs.lane = passed.lane and runs.queued_at < passed.until
    where id = any (%(ids)s::uuid[]) and scheduled_for >= %(since)s and scheduled_for < %(until)s and state = 'queued'
    limit 1000
),
unsent as materialized (
    select run_id
    from outbox
    where slice = any (array(select distinct shard from queued)) and run_id = any (%(ids)s::uuid[])
    union all
    select message.run_id
    from outbox, unnest(run_ids) as message (run_id)
    where slice = any (array(select distinct shard from queued)) and run_ids && %(ids)s::uuid[]
)
select id::text from queued where id not in (select run_id from unsent)
