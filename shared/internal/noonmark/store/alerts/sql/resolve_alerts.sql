-- Resolves alerts whose problem is over, each once, whichever observer does it, with one delivery for each channel.
with resolved as (
    update alerts set resolved_at = noonmark_now()
    where fingerprint = any (%(fingerprints)b::text[]) and resolved_at is null
    returning id, fingerprint, kind, severity, namespace, job_id, run_id, summary, details, raised_at, resolved_at
), queued as (
    insert into alert_deliveries (alert_id, change, channel, due_at)
    select resolved.id, 'resolved', channel, noonmark_now() from resolved, unnest(%(channels)b::text[]) as c (channel)
)
select * from resolved
