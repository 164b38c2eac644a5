-- The live services on the path of a run, and how far the relay of its slice and lane is behind. A worker is live while its
-- lease is valid, whether or not a trigger is there to expire it. Its runs are counted from its start batches.
with mine as materialized (
    select id, epoch, beat_at,
           lapsed_at is null and left_at is null and beat_at >= noonmark_now() - make_interval(secs => lease_seconds) as alive
    from workers where pool = %(pool)s
)
select noonmark_now() as now,
       (select count(*) from members
        where role = 'trigger' and beat_at > noonmark_now() - make_interval(secs => %(timeout_seconds)s)) as triggers,
       (select max(beat_at) from members where role = 'trigger') as trigger_beat_at,
       (select count(*) from members
        where role = 'dispatcher' and beat_at > noonmark_now() - make_interval(secs => %(timeout_seconds)s)) as dispatchers,
       (select max(beat_at) from members where role = 'dispatcher') as dispatcher_beat_at,
       (select count(*) from mine where alive) as workers,
       (select max(beat_at) from mine) as worker_beat_at,
       (select coalesce(sum(live.runs), 0)::bigint
        from mine join start_batches as batch on batch.worker = mine.id and mine.alive
        cross join lateral (
            select count(*) as runs from runs
            where id = any (batch.run_ids)
              and scheduled_for between batch.first_scheduled_for and batch.last_scheduled_for
              and owner = batch.worker and started_at = batch.started_at and state in ('running', 'cancelling')
        ) as live) as in_flight,
       (select coalesce(sum(coalesce(cardinality(run_ids), 1)), 0)::bigint from (
            select run_ids from outbox where slice = %(shard)s and lane = any (array[%(lane)s, %(lane)s + 10]) limit %(cap)s
        ) as counted) as unsent,
       (select min(created_at) from unnest(array[%(lane)s, %(lane)s + 10]) as both_lanes (lane),
             lateral (select created_at from outbox where slice = %(shard)s and outbox.lane = both_lanes.lane
                      order by seq limit 1) as head) as oldest_unsent_at,
       (select passed_until from topic_progress
        where topic = %(topic)s and measured_at > noonmark_now() - interval '5 minutes') as passed_until
