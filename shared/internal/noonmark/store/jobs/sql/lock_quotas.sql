-- Locks the quotas of namespaces that get new jobs, in the order of names: the second transaction counts the jobs of the
-- first.
select name, max_jobs from namespaces
where name = any (%(names)s::text[]) and max_jobs is not null
order by name
for no key update
