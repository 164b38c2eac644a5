-- Locks the quotas of namespaces that new jobs come to, in the order of names: who comes second counts the first one's jobs.
select name, max_jobs from namespaces
where name = any (%(names)s::text[]) and max_jobs is not null
order by name
for no key update
