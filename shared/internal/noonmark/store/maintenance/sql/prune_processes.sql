-- Processes that died without a word.
delete from process_progress where seen_at < noonmark_now() - interval '1 hour'
