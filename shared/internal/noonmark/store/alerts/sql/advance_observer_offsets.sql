-- Advances the offsets of the partitions of a stored batch.
update observer_offsets as kept
set next_offset = batch.next_offset, caught_up = batch.caught_up, read_at = noonmark_now()
from unnest(%(partitions)b::int[], %(next_offsets)b::bigint[], %(caught_up)b::bool[]) as batch (partition, next_offset, caught_up)
where kept.topic = %(topic)s and kept.partition = batch.partition and kept.next_offset < batch.next_offset
