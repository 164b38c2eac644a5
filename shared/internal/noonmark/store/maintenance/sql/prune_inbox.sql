-- Event ids are forgotten only after their topic has forgotten the events.
delete from inbox where received_at < noonmark_now() - make_interval(days => %(days)s)
