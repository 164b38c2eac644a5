-- Says that a namespace is paused: whoever makes a job in it from this commit on makes it held. Nothing comes back
-- where that, with this reason, is so already.
update namespaces
set paused_at = coalesce(paused_at, noonmark_now()), pause_reason = coalesce(%(reason)s, pause_reason),
    updated_at = noonmark_now()
where name = %(name)s and (paused_at is null or pause_reason is distinct from coalesce(%(reason)s, pause_reason))
returning paused_at
