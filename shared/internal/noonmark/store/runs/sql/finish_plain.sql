-- Records runs that succeeded without a result, all of one fence number. Guarded by fence, owner and epoch: a row that is
-- not counted belongs to another worker by now, and nothing else is written for it.
-- Nearly always all rows are written, and none was to be cancelled: then their number says all, and no row is returned.
with done as (
    update runs
    set state = case state when 'cancelling' then 'cancelled' else 'succeeded' end, finished_at = noonmark_now()
    where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
      and fence = %(fence)s and owner = %(worker)s and epoch = %(epoch)s and state in ('running', 'cancelling')
    returning id, state, finished_at
), counted as (
    select count(*) as written, count(*) filter (where state = 'succeeded') as succeeded, max(finished_at) as finished_at
    from done
)
select counted.written, counted.finished_at, exceptions.ids, exceptions.states
from counted
     left join lateral (
         select array_agg(id) as ids, array_agg(state) as states from done
         where counted.succeeded < %(expected)s
     ) as exceptions on true
