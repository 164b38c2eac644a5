-- Measures how far the relay of each owned slice is behind, by lane (3: events): the age of the oldest row, and the depth in
-- runs or events of rows up to a cap. By lane, so that the backlog of a lower lane never delays a higher one; a lane's rows with
-- several runs are in the lane ten above it. A row that a session has locked or is deleting (xmax) has no age: a person's lock
-- must not hold back the claims of a slice.
select owned.slice, lanes.lane,
       extract(epoch from noonmark_now() - oldest.created_at)::float8 as age_seconds,
       depth.rows
from unnest(%(slices)b::smallint[]) as owned (slice),
     unnest('{0,1,2,3}'::smallint[]) as lanes (lane),
     lateral (
         select min(head.created_at) as created_at
         from unnest(array[lanes.lane, lanes.lane + 10]) as both_lanes (lane),
              lateral (select created_at from outbox
                       where slice = owned.slice and outbox.lane = both_lanes.lane and xmax = 0 order by seq limit 1) as head
     ) as oldest,
     lateral (
         select coalesce(sum(coalesce(cardinality(run_ids), 1)), 0)::bigint as rows
         from unnest(array[lanes.lane, lanes.lane + 10]) as both_lanes (lane),
              lateral (select run_ids from outbox
                       where slice = owned.slice and outbox.lane = both_lanes.lane order by seq limit %(cap)s) as counted
     ) as depth
