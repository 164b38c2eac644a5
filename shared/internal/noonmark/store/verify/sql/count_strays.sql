-- Counts rows that nothing will ever process, each up to a cap: timers of runs that have ended or do not exist; timers and rows
-- of the outbox in shards or lanes or of kinds that do not exist; and first rows of the outbox that are dated in the future,
-- which hide how old the outbox is. All are found by key, as steps of a check do not scan tables; runs are looked up one by one.
-- A timer that tells a workflow of the end of a task (kind 5) is about a run that has ended.
with shard as materialized (
    select generate_series(0, shards - 1)::smallint as no from install
), lane as materialized (
    select no, generate_series(0, 2)::smallint as lane from shard
)
select
    (select count(*)
     from (select timer.run_id, timer.scheduled_for, kind.no
           from lane, unnest(array[2, 4, 5]) as kind (no),
                lateral (select run_id, scheduled_for from timers
                         where timers.shard = lane.no and timers.lane = lane.lane and timers.kind = kind.no
                         order by fire_at limit %(cap)s) as timer
           limit %(cap)s) as timer
     where (select finished_at is null or finished_at >= %(settled)s or (timer.no = 5 and origin = 'task')
            from runs where id = timer.run_id and runs.scheduled_for = timer.scheduled_for limit 1) is not true) as ended_timers,
    (select count(*)
     from ((select 1 from timers where shard < 0 limit %(cap)s)
           union all
           (select 1 from timers where shard >= (select shards from install) limit %(cap)s)
           union all
           select 1 from shard, lateral (select from timers where shard = shard.no and lane < 0 limit %(cap)s) as found
           union all
           select 1 from shard, lateral (select from timers where shard = shard.no and lane > 2 limit %(cap)s) as found
           union all
           select 1 from lane, lateral (select from timers where shard = lane.no and timers.lane = lane.lane and kind < 0
                                        limit %(cap)s) as found
           union all
           select 1 from lane, lateral (select from timers where shard = lane.no and timers.lane = lane.lane and kind > 5
                                        limit %(cap)s) as found) as found) as misplaced_timers,
    (select count(*)
     from ((select 1 from outbox where slice < 0 limit %(cap)s)
           union all
           (select 1 from outbox where slice >= (select shards from install) limit %(cap)s)
           union all
           select 1 from shard, lateral (select from outbox where slice = shard.no and lane < 0 limit %(cap)s) as found
           union all
           select 1 from shard, lateral (select from outbox where slice = shard.no and lane > 4 and lane not between 10 and 12
                                         limit %(cap)s) as found)
          as found) as misplaced_messages,
    (select count(*)
     from shard, unnest('{0,1,2,3,10,11,12}'::int[]) as lane (lane),
          lateral (select created_at from outbox where slice = shard.no and outbox.lane = lane.lane order by seq limit 1) as head
     where head.created_at > %(soon)s) as future_messages
