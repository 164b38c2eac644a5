-- What waits for longer than any wait lasts was put off before the clock was set back: it is due.
update alert_deliveries set due_at = noonmark_now()
where channel = %(channel)s and due_at > noonmark_now() + make_interval(secs => %(longest_seconds)s) and due_at < 'infinity'
