-- Finds those of some names that no namespace has: neither one that was created, nor one that a job uses.
select wanted.name
from unnest(%(names)s::text[]) as wanted (name)
where not exists (select from namespaces where namespaces.name = wanted.name)
  and not exists (select from jobs where jobs.namespace = wanted.name)
order by wanted.name
