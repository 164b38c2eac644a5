-- Stops the reminders of an alert that is resolved. It also drops the resolution of an alert for Alertmanager, which
-- identifies an alert by its labels and not by its id, while a new alert with the same labels is open.
update alert_deliveries
set due_at = 'infinity', attempts = 0
from alerts
where alert_deliveries.channel = %(channel)s and alert_deliveries.due_at <= noonmark_now()
  and alerts.id = alert_deliveries.alert_id and alerts.resolved_at is not null
  and (
      (alert_deliveries.change = 'raised' and alert_deliveries.sent_at is not null)
      or (alert_deliveries.change = 'resolved' and exists (
          select from alerts as next where next.fingerprint = alerts.fingerprint and next.resolved_at is null)))
