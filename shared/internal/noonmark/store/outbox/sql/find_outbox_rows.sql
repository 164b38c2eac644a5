-- Which of these rows are still in their places.
select seq from outbox where ctid = any (array(select unnest(%(places)b::tid[]))) and seq = any (%(seqs)b::bigint[])
