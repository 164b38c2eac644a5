-- Ends a backfill; a running step of it commits first.
update backfills
set state = 'cancelled', state_reason = %(reason)s, updated_at = noonmark_now(), finished_at = noonmark_now()
where id = %(id)s and state = 'running'
returning job_id, from_at, until_at
