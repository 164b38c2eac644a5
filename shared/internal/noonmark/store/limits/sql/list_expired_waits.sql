-- Lists runs that wait for capacity and whose start deadline has passed, the oldest deadline first.
select run_id, scheduled_for from waits
where key is not null and start_by is not null and start_by < noonmark_now()
order by start_by limit %(limit)s
