-- Deletes rows of former workers once nothing can refer to them.
delete from workers
where coalesce(lapsed_at, left_at) < noonmark_now() - interval '1 day'
  and not exists (select from start_batches where start_batches.worker = workers.id)
