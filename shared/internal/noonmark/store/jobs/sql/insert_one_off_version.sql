-- Creates a version of a locked job for one run with its own payload: a run pins a version, and every worker that runs,
-- retries or redrives it reads that version. Numbers from 1,000,000,000 on never collide with those of edits.
insert into job_versions (job_id, version, name, kind, handler, lane, pool, work, schedule, policy, labels, description,
                          owner, replaced_at)
select id,
       coalesce((select max(version) + 1 from job_versions where job_id = %(job_id)s and version >= 1000000000), 1000000000),
       name, kind, handler, lane, pool,
       ('{"payload":' || %(payload)s || ',' || substr((work::jsonb - 'payload')::text, 2))::json,
       schedule, policy, labels, description, owner, noonmark_now()
from jobs where id = %(job_id)s and version = %(version)s
returning version
