-- Recurring jobs whose schedule has no further instant. One-time jobs are complete when their timer is gone.
update jobs set state = 'completed', updated_at = noonmark_now()
where id = any (%(ids)b::uuid[]) and state = 'active'
