-- The lines in which runs wait, from a key on: each step jumps to the next key in the index, so that a long line costs
-- no more than a short one. What a line is of stands in its first row.
with recursive line (key, number) as (
    (select key, 1 from waits where key is not null and key >= %(from_key)s order by key limit 1)
    union all
    select (select key from waits where key is not null and key > line.key order by key limit 1), number + 1
    from line where line.key is not null and number < %(limit)s
)
select line.key, first.reason, first.namespace, first.lane, first.limit_name, first.limit_key
from line, lateral (
    select reason, namespace, lane, limit_name, limit_key from waits where key = line.key order by lane, since limit 1
) as first
