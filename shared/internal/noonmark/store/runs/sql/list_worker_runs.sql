-- Lists which of these runs the worker owns now, with state (`cancelling` if the run was asked to stop) and fence.
select id, state, scheduled_for, fence from runs
where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
  and owner = %(worker)s and epoch = %(epoch)s and state in ('running', 'cancelling')
