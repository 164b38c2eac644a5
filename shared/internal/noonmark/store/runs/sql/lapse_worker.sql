-- Lapses one worker before its lease is over: it is about to be ended. Its runs are requeued from their start batches.
update workers set lapsed_at = noonmark_now(), epoch = epoch + 1
where id = %(worker)s and epoch = %(epoch)s and lapsed_at is null and left_at is null
returning id
