-- Records what a step did, in its transaction: the runs and the new position commit together or not at all.
update backfills
set next_at = %(next_at)s, ended_to = %(ended_to)s, instants = instants + %(examined)s, queued = queued + %(queued)s,
    state = %(state)s, state_reason = %(reason)s, updated_at = noonmark_now(),
    finished_at = case when %(state)s <> 'running' then noonmark_now() end
where id = %(id)s and state = 'running'
