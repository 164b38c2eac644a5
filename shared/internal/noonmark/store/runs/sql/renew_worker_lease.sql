-- Renews a worker's lease. If no row is returned, the lease has lapsed or the worker has left, and it must stop its runs.
update workers set beat_at = noonmark_now()
where id = %(worker)s and epoch = %(epoch)s and lapsed_at is null and left_at is null
returning beat_at
