-- Locks the oldest waiting rows until they are relayed. Rows locked by another dispatcher are skipped. A document that is
-- too large is not read, and its row is parked. No more is read than fits in memory at once, but the first row always is.
-- Each document is converted to text once.
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
