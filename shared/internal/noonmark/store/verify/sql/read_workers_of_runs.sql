-- Reads the workers that the runs of a step and their attempts name, each by its key. Former workers are pruned after a day.
select workers.id, pool, pid, epoch, started_at as since, coalesce(lapsed_at, left_at) as until, beat_at as beat
from unnest(%(ids)s::bigint[]) as wanted (id)
cross join lateral (select * from workers where id = wanted.id offset 0) as workers
