-- Deletes old answers to requests with an idempotency key. They are stored for clients that repeat a request because they got
-- no answer, which happens soon or never. A bounded number at a time: each create with a key leaves one.
delete from idempotency
where ctid = any (array(
    select ctid from idempotency where made_at < noonmark_now() - interval '24 hours' order by made_at limit %(limit)s
))
