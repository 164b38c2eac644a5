-- Lists limits with the number of held slots and waiting runs over all their keys, for people.
with used as materialized (
    select namespace, limit_name, count(*) as number from limit_slots where limit_name is not null group by 1, 2
), queued as materialized (
    select namespace, limit_name, count(*) as number from waits where key is not null and limit_name is not null group by 1, 2
)
select limits.namespace, limits.name, max_running, rate_count, rate_seconds, burst, coalesce(used.number, 0) as in_use,
       coalesce(queued.number, 0) as waiting, updated_at
from limits
     left join used on used.namespace = limits.namespace and used.limit_name = limits.name
     left join queued on queued.namespace = limits.namespace and queued.limit_name = limits.name
where %(namespace)s::text is null or limits.namespace = %(namespace)s
order by 1, 2
