-- Whether every live member of a role has a capability; false if there is none.
select coalesce(bool_and(%(capability)s = any (capabilities)), false)
from members where role = %(role)s and beat_at > noonmark_now() - make_interval(secs => %(timeout_seconds)s)
