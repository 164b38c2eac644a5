-- Deletes processes that died without deregistering.
delete from process_progress where seen_at < noonmark_now() - interval '1 hour'
