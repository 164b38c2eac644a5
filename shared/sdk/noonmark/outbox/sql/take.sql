-- Locks the oldest waiting rows until they are relayed. Rows that another dispatcher holds are left to it. A document
-- that is too large is not even read: its row is parked. Nor are more read than are held at once; the first is always
-- read. Each document is made text once.
with locked as materialized (
    select id, seq, namespace, idempotency_key, document::text as document
    from noonmark_outbox
    where ctid = any(array(
        select ctid from noonmark_outbox where parked_at is null order by seq limit %(most_rows)s for update skip locked
    ))
),
sized as (
    select *, sum(least(octet_length(document), %(most_bytes)s)) over (order by seq) as bytes_up_to_it from locked
)
select id, namespace, idempotency_key, case when octet_length(document) <= %(most_bytes)s then document end
from sized
where bytes_up_to_it - least(octet_length(document), %(most_bytes)s) < %(batch_bytes)s
order by seq
