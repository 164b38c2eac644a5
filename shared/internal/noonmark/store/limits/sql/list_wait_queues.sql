-- Lists the queues in which runs wait, from a key on: each step jumps to the next key in the index, so that a long queue
-- costs no more than a short one. The first row of a queue describes its gate.
with recursive queue (key, number) as (
    (select key, 1 from waits where key is not null and key >= %(from_key)s order by key limit 1)
    union all
    select (select key from waits where key is not null and key > queue.key order by key limit 1), number + 1
    from queue where queue.key is not null and number < %(limit)s
)
select queue.key, first.reason, first.namespace, first.lane, first.limit_name, first.limit_key
from queue, lateral (
    select reason, namespace, lane, limit_name, limit_key from waits where key = queue.key order by lane, since limit 1
) as first
