-- Finds those of the runs of a day that do not exist, in any namespace; none if retention has dropped the day since the days
-- were listed. The statement locks the partitions that it reads before it looks for the name of the day's table. One look-up by
-- key for each id: as `not exists` it was planned as a hash of the whole day.
select wanted.id::text
from unnest(%(ids)s::uuid[]) as wanted (id)
where to_regclass('runs_' || to_char(%(day)s::timestamptz at time zone 'UTC', 'YYYYMMDD')) is not null
  and (
      select true from runs
      where runs.id = wanted.id and runs.scheduled_for >= %(day)s and runs.scheduled_for < %(day_end)s
      limit 1
  ) is null
