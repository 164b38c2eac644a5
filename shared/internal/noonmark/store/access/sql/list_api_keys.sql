-- Keys for people, by id. No secret is among the columns that the API's role can read.
select key_id, name, grants, platform, scopes, rate_per_minute, signs, created_at, created_by, expires_at, last_used_at,
       revoked_at,
       case when revoked_at is not null then 'revoked' when expires_at <= noonmark_now() then 'expired' else 'valid' end
from api_keys
where (%(key_id)s::text is null or key_id = %(key_id)s)
  and (%(after)s::text is null or key_id > %(after)s)
  and (%(namespace)s::text is null or platform or grants ? %(namespace)s or grants ? '*')
  and (%(ended)s or (revoked_at is null and (expires_at is null or expires_at > noonmark_now())))
order by key_id
limit %(limit)s
