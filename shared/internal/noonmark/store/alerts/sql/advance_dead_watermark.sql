-- Advances the watermark of dead letters; the next check reads those that died later.
update observer_state set died_until = %(until)s
