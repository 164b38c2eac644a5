-- Finds another running backfill of the job in a part of the same range.
select id from backfills
where job_id = %(job_id)s and state = 'running' and from_at < %(until_at)s and until_at > %(from_at)s
limit 1
