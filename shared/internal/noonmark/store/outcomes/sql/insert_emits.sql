-- Adds events that runs emitted to the outbox, in the transaction that recorded their success. Separate from lifecycle
-- events, of which there are many more and which have no headers. The order of the arrays becomes the order of `seq`.
insert into outbox (slice, lane, created_at, topic, key, value, headers)
select slice, 3, noonmark_now(), topic, key, value, headers
from unnest(%(slices)b::smallint[], %(topics)b::text[], %(keys)b::bytea[], %(values)b::bytea[], %(headers)b::bytea[])
     with ordinality as u (slice, topic, key, value, headers, place)
order by place
