-- Third lock of a step: the job as it is now cannot be paused, cancelled or edited until the commit.
select state, coalesce(policy ->> 'overlap', 'allow') = 'skip' as one_by_one from jobs where id = %(job_id)s for share
