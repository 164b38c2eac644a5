-- Finds the last dead letter of a step: the `rows`-th after a run, in the order of its key. Null: fewer are left.
select run_id
from dead_letters
where run_id > %(after)s
order by run_id
offset %(rows)s - 1 limit 1
