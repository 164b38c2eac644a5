-- Limits by their names, as they are until the commit: an edit of one waits for the promotion pass that uses it.
select limits.namespace, limits.name, max_running, rate_count, rate_seconds, burst
from unnest(%(namespaces)b::text[], %(names)b::text[]) as wanted (namespace, name)
     join limits on limits.namespace = wanted.namespace and limits.name = wanted.name
order by limits.namespace, limits.name
for update of limits
