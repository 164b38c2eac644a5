-- Lists the start batches of a worker: what it runs according to Postgres.
select id, first_scheduled_for, last_scheduled_for, run_ids from start_batches
where worker = %(worker)s and epoch = %(epoch)s
