-- What Postgres believes that this worker is running.
select id, first_scheduled_for, last_scheduled_for, run_ids from start_batches
where worker = %(worker)s and epoch = %(epoch)s
