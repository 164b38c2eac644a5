-- Moves events that Kafka refuses to the lane of refused events, with the reason; they block nothing there and keep their
-- order. Nothing is lost: they are tried again, see `read_refused`.
-- A TID scan guarded by the sequence, as in `delete_outbox`; the reasons are passed as one JSON object by sequence.
update outbox set lane = 4, refusal = %(reasons)s::jsonb ->> seq::text
where ctid = any (array(select unnest(%(places)b::tid[]))) and seq = any (%(seqs)b::bigint[])
