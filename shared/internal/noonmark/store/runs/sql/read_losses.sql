-- How many workers each of these runs has lost.
select id, losses from runs where id = any (%(ids)b::uuid[]) and scheduled_for between %(first)s and %(last)s
