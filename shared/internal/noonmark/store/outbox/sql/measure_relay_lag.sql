-- Measures how far the relay of each owned slice is behind, by lane (3: events): the age of the oldest row, and the depth up
-- to a cap. By lane, so that the backlog of a lower lane never delays a higher one.
select owned.slice, lanes.lane,
       extract(epoch from noonmark_now() - oldest.created_at)::float8 as age_seconds,
       depth.rows
from unnest(%(slices)b::smallint[]) as owned (slice),
     unnest('{0,1,2,3}'::smallint[]) as lanes (lane),
     lateral (
         select min(head.created_at) as created_at
         from (select created_at from outbox
               where slice = owned.slice and lane = lanes.lane order by seq limit 1) as head
     ) as oldest,
     lateral (
         select count(*) as rows
         from (select from outbox where slice = owned.slice and lane = lanes.lane limit %(cap)s) as counted
     ) as depth
