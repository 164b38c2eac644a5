-- Calendars with the number of jobs that use them. Jobs are read once, whatever the number of calendars.
with used as (
    select jobs.namespace, pair ->> 0 as name, count(distinct jobs.id) as jobs
    from jobs,
         lateral jsonb_array_elements(jsonb_build_array(schedule) || coalesce(schedule -> 'any', '[]')) as part (rule),
         lateral jsonb_array_elements(coalesce(rule #> '{calendars,exclude}', '[]')
                                      || coalesce(rule #> '{calendars,include}', '[]')) as named (pair)
    where (schedule ? 'calendars' or schedule ? 'any') and state <> 'cancelled'
      and (%(namespace)s::text is null or namespace = %(namespace)s)
    group by 1, 2
)
select calendars.namespace, calendars.name, calendars.digest, calendars.updated_at, calendar_contents.body,
       coalesce(used.jobs, 0)
from calendars
join calendar_contents using (digest)
left join used using (namespace, name)
where (%(namespace)s::text is null or calendars.namespace = %(namespace)s)
  and (%(name)s::text is null or calendars.name = %(name)s)
order by calendars.namespace, calendars.name
