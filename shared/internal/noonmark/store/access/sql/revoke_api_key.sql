-- Revokes a key permanently: a revoked key is never valid again, and keeps the time of its first revocation.
update api_keys set revoked_at = noonmark_now() where key_id = %(key_id)s and revoked_at is null
