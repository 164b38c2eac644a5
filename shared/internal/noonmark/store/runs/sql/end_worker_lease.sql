-- Ends the lease of a drained worker, so that nothing waits for it to lapse.
update workers set left_at = noonmark_now(), epoch = epoch + 1
where id = %(worker)s and epoch = %(epoch)s and lapsed_at is null and left_at is null
returning id
