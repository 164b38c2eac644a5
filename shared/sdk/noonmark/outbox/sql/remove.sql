-- Deletes rows whose jobs noonmark has committed. They are locked by this very transaction.
delete from noonmark_outbox where id = any(%(ids)s) and parked_at is null
