-- Deletes event ids, but only after their topic has deleted the events.
delete from inbox where received_at < noonmark_now() - make_interval(days => %(days)s)
