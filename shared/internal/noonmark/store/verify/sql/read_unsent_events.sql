-- Reads events about runs that are still in the outbox: waiting for the relay, or refused by Kafka. Some at a time, in the order
-- of their key; whatever is relayed meanwhile is in Kafka.
select head.slice, head.lane, head.seq, head.topic, head.value
from generate_series(%(slice)s::int, (select shards from install) - 1) as slice,
     unnest(array[3, 4]) as lane,
     lateral (
         select outbox.slice, outbox.lane, seq, topic, value
         from outbox
         where outbox.slice = slice.slice and outbox.lane = lane.lane and topic = any (%(topics)s)
           and (outbox.slice, outbox.lane, seq) > (%(slice)s::smallint, %(lane)s::smallint, %(seq)s::bigint)
         order by seq limit %(rows)s
     ) as head
order by head.slice, head.lane, head.seq limit %(rows)s
