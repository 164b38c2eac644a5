-- Deletes acknowledged rows that no other session has locked; see delete_outbox.
delete from outbox
where ctid = any (array(select ctid from outbox
                        where ctid = any (array(select unnest(%(places)b::tid[]))) and seq = any (%(seqs)b::bigint[])
                        for update skip locked))
