-- A worker that was asked to end says so: what it has goes on, and nobody counts on its slots any more.
update workers set draining_at = noonmark_now()
where id = %(worker)s and epoch = %(epoch)s and lapsed_at is null and left_at is null
returning id
