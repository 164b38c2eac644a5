-- Records that a worker drains: it continues its runs, but its slots no longer count as capacity.
update workers set draining_at = noonmark_now()
where id = %(worker)s and epoch = %(epoch)s and lapsed_at is null and left_at is null
returning id
