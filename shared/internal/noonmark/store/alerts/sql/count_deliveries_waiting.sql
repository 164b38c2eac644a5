-- Counts a channel's unsent deliveries, up to a cap.
select count(*) from (
    select from alert_deliveries
    where channel = %(channel)s and due_at < 'infinity' and sent_at is null
    limit %(cap)s
) as counted
