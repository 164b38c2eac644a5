-- Records what a channel accepted. Reminders of an open alert become due again.
update alert_deliveries
set sent_at = noonmark_now(), last_error = null,
    attempts = case when sent.again then 0 else alert_deliveries.attempts end,
    due_at = case when sent.again then noonmark_now() + make_interval(secs => %(again_seconds)s) else 'infinity' end
from unnest(%(alerts)b::uuid[], %(changes)b::text[], %(attempts)b::int[], %(again)b::bool[])
    as sent (alert_id, change, attempts, again)
where alert_deliveries.alert_id = sent.alert_id and alert_deliveries.change = sent.change
  and alert_deliveries.channel = %(channel)s and alert_deliveries.attempts = sent.attempts
  and alert_deliveries.due_at < 'infinity'
