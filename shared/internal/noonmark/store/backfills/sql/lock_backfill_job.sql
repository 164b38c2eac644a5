-- Third lock of a step: the job cannot be paused, cancelled or edited until the commit.
select state, coalesce(policy ->> 'overlap', 'allow') <> 'allow' as one_by_one, policy -> 'limits' as limits,
       exists (select from namespaces where name = jobs.namespace and max_in_flight is not null) as capped
from jobs where id = %(job_id)s for share of jobs
