-- Lists which of these runs the worker owns now, with the state: `cancelling` if the run was asked to stop.
select id, state, scheduled_for from runs
where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
  and owner = %(worker)s and epoch = %(epoch)s and state in ('running', 'cancelling')
