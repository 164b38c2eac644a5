-- Runs that wait for room and whose start deadline has passed, the longest late first.
select run_id, scheduled_for from waits
where key is not null and start_by is not null and start_by < noonmark_now()
order by start_by limit %(limit)s
