-- Restricts the rest of the transaction to a role and namespaces; without namespaces, to all of them (`*`). Local to the
-- transaction, like `set local`: a connection that goes back to a pool, or through a pooler, keeps nothing of it.
select set_config('role', %(role)s, true),
       set_config('noonmark.namespaces', coalesce(%(namespaces)s::text[]::text, '*'), true)
