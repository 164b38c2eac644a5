-- Says that a namespace goes on: jobs made in it from this commit on are active.
update namespaces set paused_at = null, pause_reason = null, updated_at = noonmark_now()
where name = %(name)s and paused_at is not null
returning name
