-- Binds the rest of the transaction to a role and namespaces; none given: to all of them, `*`. Local to it, as `set local`
-- is: a connection that goes back to a pool, or through a pooler, takes nothing along.
select set_config('role', %(role)s, true),
       set_config('noonmark.namespaces', coalesce(%(namespaces)s::text[]::text, '*'), true)
