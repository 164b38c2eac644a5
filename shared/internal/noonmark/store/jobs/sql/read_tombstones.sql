-- Which of these names were cancelled by an event, and by which sequence at the latest.
select grave.namespace, grave.name, grave.event_sequence
from unnest(%(namespaces)b::text[], %(names)b::text[]) as wish (namespace, name),
     lateral (
         select namespace, name, event_sequence from tombstones
         where tombstones.namespace = wish.namespace and tombstones.name = wish.name offset 0
     ) as grave
