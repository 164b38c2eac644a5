-- Whether an update would leave a locked job unchanged; then it creates no version and moves no timer.
select 1 from jobs
where id = %(job_id)s and version = %(version)s and kind = %(kind)s and handler is not distinct from %(handler)s
  and lane = %(lane)s and pool = %(pool)s and schedule is not distinct from %(schedule)s::jsonb
  and policy is not distinct from %(policy)s::jsonb
  and noonmark_readable(work)::jsonb = %(work)s::jsonb
  and labels is not distinct from %(labels)s::jsonb and description is not distinct from %(description)s
  and owner is not distinct from %(owner)s and name is not distinct from coalesce(%(name)s, name)
  and idempotency_key is not distinct from coalesce(%(idempotency_key)s, idempotency_key)
