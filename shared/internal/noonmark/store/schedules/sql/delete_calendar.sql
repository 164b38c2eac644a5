-- Removes a name that no job uses. Its contents stay: earlier versions of jobs, and cancelled ones, still name them.
delete from calendars where namespace = %(namespace)s and name = %(name)s
