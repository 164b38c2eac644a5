-- Namespaces that have a row or a recurring job. The jobs are not scanned: each step jumps to the next namespace in the
-- index on names.
with recursive used (name) as (
    select min(namespace) from jobs where unique_name and state <> 'cancelled'
    union all
    select (select min(namespace) from jobs where namespace > used.name and unique_name and state <> 'cancelled')
    from used where used.name is not null
)
select coalesce(known.name, used.name), coalesce(known.timezone, 'UTC'), known.paused_at, known.pause_reason,
       known.max_in_flight, known.max_jobs, known.updated_at
from namespaces as known full join (select name from used where name is not null) as used on used.name = known.name
where %(name)s::text is null or coalesce(known.name, used.name) = %(name)s
order by 1
