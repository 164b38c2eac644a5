-- Creates a backfill. The caller has locked the job, so what it read of the job is still true.
insert into backfills (id, job_id, namespace, pool, shard, job_version, schedule, mode, from_at, until_at, next_at, ended_to,
                       state, total, requested_by, created_at, updated_at)
values (%(id)s, %(job_id)s, %(namespace)s, %(pool)s, %(shard)s, %(job_version)s, %(schedule)s::jsonb, %(mode)s,
        %(from_at)s, %(until_at)s, %(from_at)s, %(from_at)s, 'running', %(total)s, %(requested_by)s, noonmark_now(),
        noonmark_now())
