-- Reads refused events of the owned slices in the order of their sequence, from a position on: a round over all of them
-- takes as many reads as necessary, and no row has to be written for it.
select head.ctid::text, head.seq, owned.slice, head.lane, head.run_id, head.job_id, head.scheduled_for,
       head.fence, head.job_version, head.namespace, head.pool, head.topic, head.key, head.value, head.headers,
       head.run_ids, head.job_ids, head.instants, head.job_versions
from unnest(%(slices)b::smallint[]) as owned (slice),
     lateral (
         select ctid, * from outbox
         where slice = owned.slice and lane = 4 and seq > %(after)s
         order by seq limit %(most)s
     ) as head
order by head.seq limit %(most)s
