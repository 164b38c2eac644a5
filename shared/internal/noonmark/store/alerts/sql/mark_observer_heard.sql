-- Records when the last outcome happened, by the broker's clock, which a replay does not change.
update observer_state set heard_at = least(%(at)s, noonmark_now()) where heard_at < least(%(at)s, noonmark_now())
