-- Bounds the recurring jobs of a namespace, or takes the bound away.
update namespaces set max_jobs = %(most)s, updated_at = noonmark_now()
where name = %(name)s and max_jobs is distinct from %(most)s
