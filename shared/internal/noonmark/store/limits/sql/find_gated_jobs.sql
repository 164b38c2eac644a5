-- Which of these jobs have runs that need capacity before they are queued: limits, an overlap rule under which runs wait, or
-- a namespace with a cap.
select gated.id
from unnest(%(ids)b::uuid[]) as wanted (id),
     lateral (
         select id from jobs
         where id = wanted.id
           and (policy ? 'limits' or policy ->> 'overlap' in ('queue_one', 'cancel_running')
                or exists (select from namespaces where name = jobs.namespace and max_in_flight is not null))
         offset 0
     ) as gated
