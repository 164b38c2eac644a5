-- Writes audit entries, however many, with one statement: a bulk change has an entry for each of its objects.
insert into audit_log (actor, actor_name, action, namespace, object, outcome, reason, before, after, request_id, address)
select e.actor, e.actor_name, e.action, e.namespace, e.object, e.outcome, e.reason, e.before::jsonb, e.after::jsonb,
       e.request_id, e.address
from unnest(%(actors)s::text[], %(actor_names)s::text[], %(actions)s::text[], %(namespaces)s::text[], %(objects)s::text[],
            %(outcomes)s::text[], %(reasons)s::text[], %(befores)s::text[], %(afters)s::text[], %(request_ids)s::text[],
            %(addresses)s::text[])
     as e (actor, actor_name, action, namespace, object, outcome, reason, before, after, request_id, address)
