-- Takes events that Kafka refuses as they are out of the way of the others: they go to the lane of the refused, with
-- the reason, and keep their order there. Nothing is lost: they are tried again, see `read_refused`.
-- A TID scan guarded by the sequence, as in `delete_outbox`; the reasons come as one JSON object by sequence.
update outbox set lane = 4, refusal = %(reasons)s::jsonb ->> seq::text
where ctid = any (array(select unnest(%(places)b::tid[]))) and seq = any (%(seqs)b::bigint[])
