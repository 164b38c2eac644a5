-- Records that a send failed, and when it is retried. Abandoned deliveries stay visible.
update alert_deliveries
set last_error = failed.error,
    due_at = case when failed.given_up then 'infinity' else noonmark_now() + make_interval(secs => failed.wait_seconds) end
from unnest(%(alerts)b::uuid[], %(changes)b::text[], %(attempts)b::int[], %(errors)b::text[], %(wait_seconds)b::float8[],
            %(given_up)b::bool[])
    as failed (alert_id, change, attempts, error, wait_seconds, given_up)
where alert_deliveries.alert_id = failed.alert_id and alert_deliveries.change = failed.change
  and alert_deliveries.channel = %(channel)s and alert_deliveries.attempts = failed.attempts
  and alert_deliveries.due_at < 'infinity'
returning failed.given_up
