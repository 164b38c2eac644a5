-- Reads the first due timer of each shard, lane and kind. It does not change while nothing claims; `ctid` distinguishes
-- timers of one instant.
select lanes.shard, lanes.lane, kinds.kind, next.mark
from (select shard::smallint, lane::smallint from generate_series(0, (select shards from install) - 1) as shard,
      generate_series(0, 2) as lane) as lanes,
     unnest('{0,1,2,3,4,5}'::smallint[]) as kinds (kind),
     lateral (
         select fire_at::text || ctid::text as mark from timers
         where shard = lanes.shard and lane = lanes.lane and kind = kinds.kind and fire_at <= noonmark_now()
         order by fire_at limit 1
     ) as next
