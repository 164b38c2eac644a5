-- Counts what is due and not claimed, by lane: one index scan for each shard, lane and kind, up to the cap. An
-- instant that no driver can read, such as `-infinity`, is counted, but has no age. Timers of workflows (kind 5) have an
-- age of their own, too.
select lanes.lane, coalesce(sum(due.timers), 0)::bigint as timers,
       coalesce(extract(epoch from noonmark_now() - min(due.oldest)), 0)::float8 as oldest_seconds,
       coalesce(extract(epoch from noonmark_now() - min(due.oldest) filter (where kinds.kind = 5)), 0)::float8 as facts_seconds
from generate_series(0, %(shards)s - 1) as every (shard),
     unnest('{0,1,2}'::smallint[]) as lanes (lane),
     unnest('{0,1,2,3,4,5}'::smallint[]) as kinds (kind),
     lateral (
         select count(*) as timers, min(fire_at) filter (where fire_at >= '0001-01-02 00:00+00') as oldest
         from (select fire_at from timers
               where shard = every.shard::smallint and lane = lanes.lane and kind = kinds.kind and fire_at <= noonmark_now()
               order by fire_at limit %(cap)s) as head
     ) as due
group by lanes.lane
