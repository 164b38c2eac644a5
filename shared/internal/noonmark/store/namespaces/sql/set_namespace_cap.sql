-- Sets or removes the maximum number of runs of a namespace that are in flight at a time.
update namespaces set max_in_flight = %(most)s, updated_at = noonmark_now()
where name = %(name)s and max_in_flight is distinct from %(most)s
