-- Reads keys for authentication: all that a process must refresh, with one statement. The database's clock decides how long
-- a key is still valid, because the host's clock may be wrong.
select key_id, name, secret_hash, signing_secret, grants, platform, scopes, rate_per_minute,
       extract(epoch from expires_at - noonmark_now())::double precision, revoked_at is not null, expires_at
from api_keys
where key_id = any (%(key_ids)s)
