-- Sets or removes the maximum number of recurring jobs of a namespace.
update namespaces set max_jobs = %(most)s, updated_at = noonmark_now()
where name = %(name)s and max_jobs is distinct from %(most)s
