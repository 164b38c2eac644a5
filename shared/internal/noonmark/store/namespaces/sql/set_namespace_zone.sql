-- Sets the zone of schedules that name none. Existing jobs keep theirs, which is part of their stored schedule.
update namespaces set timezone = %(timezone)s, updated_at = noonmark_now()
where name = %(name)s and timezone <> %(timezone)s
