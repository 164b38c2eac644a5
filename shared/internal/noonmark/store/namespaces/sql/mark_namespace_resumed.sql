-- Marks a namespace as resumed: jobs created in it after this commit are active.
update namespaces set paused_at = null, pause_reason = null, updated_at = noonmark_now()
where name = %(name)s and paused_at is not null
returning name
