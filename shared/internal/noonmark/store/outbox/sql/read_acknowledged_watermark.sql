-- An instant before which every run message of a lane had been acknowledged: now, less the time that a transaction may still
-- need to commit, and not later than the oldest run message in the outbox.
select pool, lane, least(noonmark_now() - interval '60 seconds',
                         (select min(created_at) from outbox
                          where outbox.lane = any (array[wanted.lane, wanted.lane + 10])
                            and outbox.pool = wanted.pool)) as acknowledged_until
from unnest(%(pools)b::text[], %(lanes)b::smallint[]) as wanted (pool, lane)
