-- The open alerts, which have their own partial index.
select fingerprint, kind, namespace, job_id, details from alerts where resolved_at is null order by fingerprint limit %(limit)s
