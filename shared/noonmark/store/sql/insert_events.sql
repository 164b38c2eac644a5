-- Events for Kafka, in the transaction that made them true.
insert into outbox (slice, lane, created_at, topic, key, value)
select slice, 3, noonmark_now(), topic, key, value
from unnest(%(slices)s::smallint[], %(topics)s::text[], %(keys)s::bytea[], %(values)s::bytea[]) as u (slice, topic, key, value)
