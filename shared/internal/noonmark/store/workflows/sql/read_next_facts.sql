-- Reads the next timer of workflows of each (shard, lane) that this trigger owns, and the database's time.
select owned.shard, lanes.lane, next.fire_at, noonmark_now() as now
from unnest(%(shards)b::smallint[]) as owned (shard),
     unnest('{0,1,2}'::smallint[]) as lanes (lane),
     lateral (
         select fire_at from timers
         where shard = owned.shard and lane = lanes.lane and kind = 5
           and fire_at between '0001-01-02 00:00+00' and '9999-12-31 00:00+00'
         order by fire_at limit 1
     ) as next
