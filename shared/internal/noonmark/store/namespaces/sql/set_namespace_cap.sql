-- Caps the runs of a namespace that are under way at a time, or takes the cap away.
update namespaces set max_in_flight = %(most)s, updated_at = noonmark_now()
where name = %(name)s and max_in_flight is distinct from %(most)s
