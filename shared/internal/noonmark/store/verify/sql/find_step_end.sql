-- Finds the last run of a step: the `rows`-th of a day after a run, in the order of ids. Ids are uuid7, so a step is a part
-- of the day's table in the order in which it was written. Null: fewer are left.
select id
from runs
where scheduled_for >= %(day)s and scheduled_for < %(day_end)s and id > %(after)s
order by id
offset %(rows)s - 1 limit 1
