-- Reads what each owned slice must send next, lane by lane, in the order of its sequence.
-- Exactly the rows read are deleted later: a row with a lower number that commits late is read by a later call. Those without
-- are sent already, but somebody has locked them.
select head.ctid::text, head.seq, owned.slice, lanes.lane, head.run_id, head.job_id, head.scheduled_for,
       head.fence, head.job_version, head.namespace, head.pool, head.topic, head.key, head.value, head.headers,
       head.run_ids, head.job_ids, head.instants, head.job_versions
from unnest(%(lanes)b::smallint[], %(limits)b::int[]) as lanes (lane, most),
     unnest(%(slices)b::smallint[]) as owned (slice),
     lateral (
         select ctid, * from outbox
         where slice = owned.slice and lane = lanes.lane and seq <> all (%(without)b::bigint[])
         order by seq limit lanes.most
     ) as head
