-- Records that this primary accepts writes, and since when without a gap. A restart, a failover or a gap restarts the count:
-- no worker is lapsed because Postgres was down.
insert into lease_watch as watch (timeline, postmaster_started_at, last_pass_at, continuous_since)
select ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int, pg_postmaster_start_time(),
       noonmark_now(), noonmark_now()
on conflict (only_row) do update
set timeline = excluded.timeline,
    postmaster_started_at = excluded.postmaster_started_at,
    last_pass_at = excluded.last_pass_at,
    continuous_since = case
        when watch.timeline = excluded.timeline
             and watch.postmaster_started_at = excluded.postmaster_started_at
             and excluded.last_pass_at - watch.last_pass_at <= make_interval(secs => %(gap_seconds)s)
        then watch.continuous_since
        else excluded.last_pass_at
    end
returning extract(epoch from last_pass_at - continuous_since)::float8 as watched_seconds
