-- Deletes counts of windows after a day, a bounded number at a time.
delete from outcome_windows
where ctid = any (array(select ctid from outcome_windows where window_at < noonmark_now() - interval '1 day' limit %(limit)s))
