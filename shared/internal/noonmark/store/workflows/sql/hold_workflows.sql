-- Holds open workflow runs, or lets them go on: what runs goes on in any case, and what ends meanwhile waits in timers.
update workflows set held_at = case when %(held)s then coalesce(held_at, noonmark_now()) end
where run_id = any (%(ids)b::uuid[])
returning run_id, scheduled_for, job_id, held_at
