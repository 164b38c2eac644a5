-- Declares workers lost that were silent for a full lease of this very primary. Raising the epoch refuses
-- every later write of theirs; their runs are taken up from their start batches.
update workers
set lapsed_at = noonmark_now(), epoch = epoch + 1
where lapsed_at is null and left_at is null
  and lease_seconds <= %(watched_seconds)s
  and beat_at < noonmark_now() - make_interval(secs => lease_seconds)
returning id
