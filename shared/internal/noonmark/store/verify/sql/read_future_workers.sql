-- Reads workers with a time in the future, in the columns of `read_workers_of_runs`: their loss would not be noticed. Former
-- workers are pruned after a day, so the table is small.
select id, pool, pid, epoch, started_at as since, coalesce(lapsed_at, left_at) as until, beat_at as beat
from workers
where greatest(started_at, beat_at, lapsed_at, left_at) > %(soon)s
