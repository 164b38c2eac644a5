-- The look at the dead letters has come so far: what died later is looked at next.
update observer_state set died_until = %(until)s
