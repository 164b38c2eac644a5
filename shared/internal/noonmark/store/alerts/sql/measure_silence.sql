-- How long no outcome has arrived, and what should have led to one meanwhile: an instant that is not planned, a run that has
-- not started, or an outcome or a run that is not sent to Kafka.
select extract(epoch from noonmark_now() - heard_at)::float8 as silence, heard_at,
       exists (
           select from unnest(%(shards)b::smallint[]) as shards (shard),
                unnest('{0,1,2}'::smallint[]) as lanes (lane), unnest('{0,1,3}'::smallint[]) as kinds (kind),
                lateral (select from timers
                         where shard = shards.shard and lane = lanes.lane and kind = kinds.kind
                           and fire_at >= '0001-01-02 00:00+00'
                           and fire_at < noonmark_now() - make_interval(secs => %(silence)s) limit 1) as due
       ) as instants_due,
       exists (select from late_runs) as runs_late,
       exists (
           select from unnest(%(shards)b::smallint[]) as slices (slice), unnest('{0,1,2,3,10,11,12}'::smallint[]) as lanes (lane),
                lateral (select created_at from outbox
                         where slice = slices.slice and lane = lanes.lane order by seq limit 1) as oldest
           where oldest.created_at < noonmark_now() - make_interval(secs => %(silence)s)
       ) as unsent
from observer_state
