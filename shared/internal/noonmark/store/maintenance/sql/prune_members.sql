-- Deletes members that died without deregistering.
delete from members where beat_at < noonmark_now() - interval '1 hour'
