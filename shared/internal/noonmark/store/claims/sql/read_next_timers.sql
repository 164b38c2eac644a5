-- Reads the next timer of each (shard, lane, kind) that this trigger owns, and the database's time.
-- One index probe each; the result decides which claims are worth a statement and how long to sleep. Instants that no driver
-- can read, such as `-infinity`, are left out.
select owned.shard, lanes.lane, kinds.kind, next.fire_at, noonmark_now() as now
from unnest(%(shards)b::smallint[]) as owned (shard),
     unnest('{0,1,2}'::smallint[]) as lanes (lane),
     unnest('{0,1,2,3,4}'::smallint[]) as kinds (kind),
     lateral (
         select fire_at from timers
         where shard = owned.shard and lane = lanes.lane and kind = kinds.kind
           and fire_at between '0001-01-02 00:00+00' and '9999-12-31 00:00+00'
         order by fire_at limit 1
     ) as next
