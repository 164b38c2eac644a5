-- Marks jobs as broken whose planning failed, with the reason; the other jobs of the batch continue.
update jobs
set state = 'broken', state_reason = broken.reason, updated_at = noonmark_now()
from unnest(%(ids)b::uuid[], %(reasons)b::text[]) as broken (id, reason)
where jobs.id = broken.id and jobs.state in ('active', 'paused')
returning jobs.id
