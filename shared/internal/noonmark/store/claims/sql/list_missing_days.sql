-- Lists the days whose ledger partitions a claim may need; only sent after a claim found one missing.
select distinct (due.scheduled_for at time zone 'UTC')::date as day
from unnest(%(shards)b::smallint[]) as owned (shard),
     unnest('{0,1,2}'::smallint[]) as lanes (lane),
     unnest('{0,1,3}'::smallint[]) as kinds (kind),
     lateral (
         select scheduled_for from timers
         where shard = owned.shard and lane = lanes.lane and kind = kinds.kind
           and fire_at between '0001-01-02 00:00+00' and noonmark_now()
           and scheduled_for between '0001-01-02 00:00+00' and '9999-12-31 00:00+00'
         order by fire_at limit %(limit)s
     ) as due
