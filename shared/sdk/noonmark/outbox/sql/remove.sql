-- Deletes rows whose jobs noonmark has committed. This transaction has locked them.
delete from noonmark_outbox where id = any(%(ids)s) and parked_at is null
