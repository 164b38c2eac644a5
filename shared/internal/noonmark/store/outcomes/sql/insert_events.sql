-- Adds events for Kafka to the outbox, in the transaction of the state change.
insert into outbox (slice, lane, created_at, topic, key, value)
select slice, 3, noonmark_now(), topic, key, value
from unnest(%(slices)b::smallint[], %(topics)b::text[], %(keys)b::bytea[], %(values)b::bytea[]) as u (slice, topic, key, value)
