-- Moves a job whose row is locked; the guard repeats what was read under the lock.
update jobs
set state = %(state)s, state_reason = %(reason)s, event_sequence = coalesce(%(sequence)s, event_sequence),
    updated_at = noonmark_now()
where id = %(job_id)s and state = %(was)s and version = %(version)s
returning id
