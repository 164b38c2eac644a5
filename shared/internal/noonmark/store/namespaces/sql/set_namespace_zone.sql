-- Sets the zone of schedules that name none. Jobs that exist keep theirs: it is part of their stored schedule.
update namespaces set timezone = %(timezone)s, updated_at = noonmark_now()
where name = %(name)s and timezone <> %(timezone)s
