-- Sets aside jobs whose planning failed, with the reason; the others of their batch go on.
update jobs
set state = 'broken', state_reason = broken.reason, updated_at = noonmark_now()
from unnest(%(ids)b::uuid[], %(reasons)b::text[]) as broken (id, reason)
where jobs.id = broken.id and jobs.state in ('active', 'paused')
returning jobs.id
