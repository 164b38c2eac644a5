-- Makes deliveries due that wait for longer than the longest delay: they were scheduled before the clock was set back.
update alert_deliveries set due_at = noonmark_now()
where channel = %(channel)s and due_at > noonmark_now() + make_interval(secs => %(longest_seconds)s) and due_at < 'infinity'
