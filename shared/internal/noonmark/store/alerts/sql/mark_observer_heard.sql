-- An outcome was heard of: what it says happened at that time by the broker's clock, which a replay does not move.
update observer_state set heard_at = least(%(at)s, noonmark_now()) where heard_at < least(%(at)s, noonmark_now())
