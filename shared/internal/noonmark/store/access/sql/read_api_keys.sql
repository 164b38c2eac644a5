-- Reads keys for authentication, all that a process must look at again with one statement. How long a key still lives is
-- said by the database's clock: the host's may be wrong.
select key_id, name, secret_hash, signing_secret, grants, platform, scopes, rate_per_minute,
       extract(epoch from expires_at - noonmark_now())::double precision, revoked_at is not null, expires_at
from api_keys
where key_id = any (%(key_ids)s)
