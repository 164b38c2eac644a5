-- Events for Kafka, in the transaction that made them true.
insert into outbox (slice, lane, created_at, topic, key, value)
select slice, 3, noonmark_now(), topic, key, value
from unnest(%(slices)b::smallint[], %(topics)b::text[], %(keys)b::bytea[], %(values)b::bytea[]) as u (slice, topic, key, value)
