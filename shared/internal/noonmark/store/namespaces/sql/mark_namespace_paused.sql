-- Marks a namespace as paused: jobs created in it after this commit are paused. Returns nothing if it is paused already,
-- with this reason.
update namespaces
set paused_at = coalesce(paused_at, noonmark_now()), pause_reason = coalesce(%(reason)s, pause_reason),
    updated_at = noonmark_now()
where name = %(name)s and (paused_at is null or pause_reason is distinct from coalesce(%(reason)s, pause_reason))
returning paused_at
