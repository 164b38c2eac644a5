-- Which of these names were cancelled by an event, and by which sequence at the latest.
select tombstone.namespace, tombstone.name, tombstone.event_sequence
from unnest(%(namespaces)b::text[], %(names)b::text[]) as wanted (namespace, name),
     lateral (
         select namespace, name, event_sequence from tombstones
         where tombstones.namespace = wanted.namespace and tombstones.name = wanted.name offset 0
     ) as tombstone
