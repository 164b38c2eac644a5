-- Locks the partitions of a batch until it is stored: of two observers that read the same records, one counts them.
select partition, next_offset from observer_offsets
where topic = %(topic)s and partition = any (%(partitions)b::int[])
order by partition
for update
