-- Raises the problems found as alerts, at most one open alert for each fingerprint, with one delivery for each channel. The
-- figures of open alerts are updated from time to time; channels that were enabled since then get a delivery.
with found as (
    select * from unnest(%(fingerprints)b::text[], %(kinds)b::text[], %(severities)b::text[], %(namespaces)b::text[],
                         %(job_ids)b::uuid[], %(run_ids)b::uuid[], %(summaries)b::text[], %(details)b::jsonb[])
             as u (fingerprint, kind, severity, namespace, job_id, run_id, summary, details)
), seen as (
    update alerts
    set seen_at = noonmark_now(), run_id = found.run_id, summary = found.summary, details = found.details
    from found
    where alerts.fingerprint = found.fingerprint and alerts.resolved_at is null
      and alerts.seen_at < noonmark_now() - make_interval(secs => %(renew_seconds)s)
    returning id
), raised as (
    insert into alerts (fingerprint, kind, severity, namespace, job_id, run_id, summary, details, raised_at, seen_at)
    select fingerprint, kind, severity, namespace, job_id, run_id, summary, details, noonmark_now(), noonmark_now()
    from found order by fingerprint
    on conflict (fingerprint) where resolved_at is null do nothing
    returning id, fingerprint, kind, severity, namespace, job_id, run_id, summary, details, raised_at, resolved_at
), queued as (
    insert into alert_deliveries (alert_id, change, channel, due_at)
    select open.id, 'raised', channel, noonmark_now()
    from (select id from raised union all select id from seen) as open, unnest(%(channels)b::text[]) as c (channel)
    on conflict do nothing
)
select * from raised
