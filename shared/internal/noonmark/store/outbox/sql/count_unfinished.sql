-- Counts unfinished runs without a scan of the ledger, from waits, start batches and the outbox. One index scan per batch:
-- the inner aggregate keeps it from becoming a join with every day of the ledger.
select (select count(*) from waits) as waiting,
       (select coalesce(sum(live.runs), 0)::bigint
        from start_batches as batch
        cross join lateral (
            select count(*) as runs from runs
            where id = any (batch.run_ids)
              and scheduled_for between batch.first_scheduled_for and batch.last_scheduled_for
              and owner = batch.worker and started_at = batch.started_at and state in ('running', 'cancelling')
        ) as live) + (select count(*) from callbacks where deadline_at is not null) as running,
       (select coalesce(sum(coalesce(cardinality(run_ids), 1)), 0)::bigint
        from (select run_ids from outbox where run_id is not null or run_ids is not null limit 100000) as unsent) as unsent
