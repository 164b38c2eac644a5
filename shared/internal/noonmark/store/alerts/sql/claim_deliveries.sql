-- Leases a channel's due deliveries, for so long that a send must be over by then. The last process that leased a delivery
-- has its highest number of attempts, and only that one may record the outcome. A resolution is sent after the start was
-- sent or abandoned, and is not being sent. SKIP LOCKED lets several observers share a channel.
update alert_deliveries
set attempts = alert_deliveries.attempts + 1,
    due_at = noonmark_now() + make_interval(secs => %(lease_seconds)s)
from alerts
where alert_deliveries.ctid = any (array(
        select due.ctid
        from alert_deliveries as due
        where due.channel = %(channel)s and due.due_at <= noonmark_now()
          and (due.change = 'raised' or not exists (
              select from alert_deliveries as first
              where first.alert_id = due.alert_id and first.channel = due.channel and first.change = 'raised'
                and first.due_at < 'infinity' and (first.sent_at is null or first.attempts > 0)))
        order by due.due_at limit %(most)s
        for update skip locked
    ))
  and alerts.id = alert_deliveries.alert_id
returning alert_deliveries.alert_id, alert_deliveries.change, alert_deliveries.attempts, noonmark_now() as now,
          alerts.kind, alerts.severity, alerts.namespace, alerts.job_id, alerts.run_id, alerts.summary, alerts.details,
          alerts.raised_at, alerts.resolved_at, alerts.fingerprint,
          coalesce((select name from jobs where jobs.id = alerts.job_id), alerts.details ->> 'job_name') as job_name
