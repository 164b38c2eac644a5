-- Notes what a channel was told. What it must hear again as long as the alert is open becomes due again.
update alert_deliveries
set sent_at = noonmark_now(), last_error = null,
    attempts = case when told.again then 0 else alert_deliveries.attempts end,
    due_at = case when told.again then noonmark_now() + make_interval(secs => %(again_seconds)s) else 'infinity' end
from unnest(%(alerts)b::uuid[], %(changes)b::text[], %(attempts)b::int[], %(again)b::bool[])
    as told (alert_id, change, attempts, again)
where alert_deliveries.alert_id = told.alert_id and alert_deliveries.change = told.change
  and alert_deliveries.channel = %(channel)s and alert_deliveries.attempts = told.attempts
  and alert_deliveries.due_at < 'infinity'
