-- Stores rejected records, once for each position; the new ones are returned and published to the rejections topic. A
-- batch that is written again after an unknown COMMIT adds nothing.
insert into rejections (topic, partition, record_offset, event_source, event_id, reason, errors, value, truncated,
                        received_at)
select topic, partition, record_offset, event_source, event_id, reason, errors::jsonb, value, truncated, noonmark_now()
from unnest(%(topics)b::text[], %(partitions)b::int[], %(offsets)b::bigint[], %(sources)b::text[], %(ids)b::text[],
            %(reasons)b::text[], %(errors)b::text[], %(values)b::bytea[], %(truncated)b::bool[])
     as u (topic, partition, record_offset, event_source, event_id, reason, errors, value, truncated)
on conflict (topic, partition, record_offset) do nothing
returning topic, partition, record_offset, received_at
