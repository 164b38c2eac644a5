-- Locks workflow runs that are to be opened again: what is read of their tasks afterwards is what they had when they ended. One
-- that another trigger has opened meanwhile is not returned.
select id from runs
where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s and state = 'queued'
order by id
for update
