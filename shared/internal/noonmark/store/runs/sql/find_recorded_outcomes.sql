-- After a COMMIT of unknown result: which of these runs have an outcome recorded by this worker, and under which fence.
select id, fence from runs
where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
  and owner = %(worker)s and epoch = %(epoch)s and state not in ('running', 'cancelling')
