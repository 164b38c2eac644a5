-- Completes recurring jobs whose schedule has no further instant. A one-time job is complete when its timer is deleted.
update jobs set state = 'completed', updated_at = noonmark_now()
where id = any (%(ids)b::uuid[]) and state = 'active'
