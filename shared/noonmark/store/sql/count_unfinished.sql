-- Unfinished runs without a scan of the ledger: waits, start batches and the outbox know them.
select (select count(*) from waits) as waiting,
       (select count(*)
        from start_batches as batch
        cross join lateral unnest(batch.run_ids) as started (id)
        join runs on runs.id = started.id
             and runs.scheduled_for between batch.first_scheduled_for and batch.last_scheduled_for
        where runs.owner = batch.worker and runs.state in ('running', 'cancelling')) as running,
       (select count(*) from (select from outbox where run_id is not null limit 100000) as unsent) as unsent
