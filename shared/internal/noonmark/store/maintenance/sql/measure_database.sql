-- Reads the oldest transaction that holds a snapshot of this database, and our connections to it. Only roles with
-- pg_read_all_stats see sessions of other roles in full.
select coalesce(extract(epoch from noonmark_now() - min(xact_start) filter (
           where backend_xmin is not null and pid <> pg_backend_pid())), 0)::float8 as oldest_xmin_seconds,
       count(*) filter (where ours and state = 'active') as active,
       count(*) filter (where ours and state = 'idle') as idle,
       count(*) filter (where ours and state like 'idle in transaction%%') as idle_in_transaction,
       count(*) filter (where ours and (state is null or state not in ('active', 'idle')
                                        and state not like 'idle in transaction%%')) as other
from (select *, application_name like 'noonmark%%' as ours from pg_stat_activity where datname = current_database()) as seen
