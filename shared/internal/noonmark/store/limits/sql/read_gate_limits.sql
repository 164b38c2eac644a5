-- Reads limits by name and locks them until the commit: an edit of a limit waits for the promotion pass that uses it.
select limits.namespace, limits.name, max_running, rate_count, rate_seconds, burst
from unnest(%(namespaces)b::text[], %(names)b::text[]) as wanted (namespace, name)
     join limits on limits.namespace = wanted.namespace and limits.name = wanted.name
order by limits.namespace, limits.name
for update of limits
