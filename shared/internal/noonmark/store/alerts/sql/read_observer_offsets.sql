-- The offsets from which partitions are read: the stored ones, unless the topic no longer contains them. Expired records are
-- skipped, and a recreated topic is read from its first record.
with places as (
    select * from unnest(%(partitions)b::int[], %(firsts)b::bigint[], %(ends)b::bigint[]) as u (partition, first, last)
), known as (
    update observer_offsets as kept
    set next_offset = case when kept.next_offset > places.last then places.first
                           else greatest(kept.next_offset, places.first) end,
        caught_up = kept.next_offset = places.last, read_at = noonmark_now()
    from places
    where kept.topic = %(topic)s and kept.partition = places.partition
    returning kept.partition, kept.next_offset
), added as (
    insert into observer_offsets (topic, partition, next_offset, caught_up, read_at)
    select %(topic)s, partition, first, first = last, noonmark_now() from places order by partition
    on conflict do nothing
    returning partition, next_offset
)
select * from known union all select * from added
