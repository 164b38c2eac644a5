-- The open alerts, which the index of open ones holds alone.
select fingerprint, kind, namespace, job_id, details from alerts where resolved_at is null order by fingerprint limit %(limit)s
