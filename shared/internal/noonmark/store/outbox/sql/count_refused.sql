-- Counts the events that Kafka refuses, by topic; each slice is counted up to the cap.
select head.topic, count(*) as events
from unnest(%(slices)b::smallint[]) as owned (slice),
     lateral (select topic from outbox where slice = owned.slice and lane = 4 limit %(cap)s) as head
group by head.topic order by events desc limit 100
