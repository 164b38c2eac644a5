-- Changes the state of a job whose row is locked; the guard repeats what was read under the lock. A pause stores its time
-- and who paused the job; a resume stores what happens to the instants that came due during the pause.
update jobs
set state = %(state)s, state_reason = %(reason)s, event_sequence = coalesce(%(sequence)s, event_sequence),
    updated_at = noonmark_now(),
    paused_at = case when %(state)s <> 'paused' then null when state = 'paused' then paused_at else noonmark_now() end,
    paused_by = case when %(state)s = 'paused' then %(held_by)s end,
    resumed_at = case when state = 'paused' and %(state)s = 'active' then noonmark_now() else resumed_at end,
    resume_choice = case when state = 'paused' and %(state)s = 'active' then %(missed)s else resume_choice end
where id = %(job_id)s and state = %(was)s and version = %(version)s
returning id
