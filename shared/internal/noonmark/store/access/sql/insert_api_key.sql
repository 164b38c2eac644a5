-- Inserts a key. Its end is computed from the database's clock, which also decides whether it has expired.
insert into api_keys (key_id, name, secret_hash, signing_secret, grants, platform, scopes, rate_per_minute, created_by,
                      expires_at)
values (%(key_id)s, %(name)s, %(secret_hash)s, %(signing_secret)s, %(grants)s::jsonb, %(platform)s, %(scopes)s::text[],
        %(rate_per_minute)s, %(created_by)s, noonmark_now() + make_interval(secs => %(lives_seconds)s::double precision))
returning key_id, name, grants, platform, scopes, rate_per_minute, signs, created_at, created_by, expires_at,
          last_used_at, revoked_at, 'valid'
