-- Deletes a calendar that no job uses. Its contents stay, because earlier versions of jobs and cancelled jobs refer to them.
delete from calendars where namespace = %(namespace)s and name = %(name)s
