-- How far the relay of each owned slice is behind: age of its oldest row, and its depth up to a cap.
select owned.slice,
       extract(epoch from noonmark_now() - oldest.created_at)::float8 as age_seconds,
       depth.rows
from unnest(%(slices)b::smallint[]) as owned (slice),
     lateral (
         select min(head.created_at) as created_at
         from unnest('{0,1,2,3}'::smallint[]) as lanes (lane),
              lateral (select created_at from outbox
                       where slice = owned.slice and lane = lanes.lane order by seq limit 1) as head
     ) as oldest,
     lateral (
         select count(*) as rows
         from (select from outbox where slice = owned.slice limit %(cap)s) as counted
     ) as depth
