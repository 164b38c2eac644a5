-- A live worker postpones the moment at which its runs are taken from it. A batch that was taken already does not exist any more.
with live as (
    select 1 from workers where id = %(worker)s and epoch = %(epoch)s and lapsed_at is null and left_at is null
)
update start_batches as batch
set overdue_at = greatest(batch.overdue_at, batch.started_at + make_interval(secs => given.seconds))
from unnest(%(ids)s::bigint[], %(seconds)s::float8[]) as given (id, seconds)
where batch.id = given.id and batch.worker = %(worker)s and batch.epoch = %(epoch)s and exists (select from live)
