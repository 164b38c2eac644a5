-- Whether every live worker of a pool has a capability; false if there is none.
select coalesce(bool_and(%(capability)s = any (capabilities)), false)
from workers where pool = %(pool)s and lapsed_at is null and left_at is null
