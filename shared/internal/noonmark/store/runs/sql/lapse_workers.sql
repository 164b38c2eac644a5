-- Lapses workers that sent no heartbeat for a full lease of this primary. The higher epoch makes all their later writes fail;
-- their runs are requeued from their start batches.
update workers
set lapsed_at = noonmark_now(), epoch = epoch + 1
where lapsed_at is null and left_at is null
  and lease_seconds <= %(watched_seconds)s
  and beat_at < noonmark_now() - make_interval(secs => lease_seconds)
returning id
