-- Reads the first row of each slice and lane of the outbox. It does not change while nothing relays. Refused events (lane 4)
-- are left out: they wait for an operator to fix their topic.
select lanes.slice, lanes.lane, next.seq::text as mark
from (select slice::smallint, lane::smallint from generate_series(0, (select shards from install) - 1) as slice,
      unnest('{0,1,2,3,10,11,12}'::int[]) as lane) as lanes,
     lateral (
         select seq from outbox
         where slice = lanes.slice and lane = lanes.lane
         order by seq limit 1
     ) as next
