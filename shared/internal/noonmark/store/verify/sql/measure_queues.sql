-- Measures what must be empty or young when nothing is wrong: the age of the oldest row of the outbox, events that Kafka has
-- refused, and slots and waits of runs that have ended or do not exist. Each count stops at a cap, and looks runs up one by one.
select
    (select coalesce(extract(epoch from noonmark_now()
                                        - min(least(noonmark_now(), greatest(head.created_at, '2000-01-01')))), 0)::float8
     from generate_series(0, (select shards from install) - 1) as slice, unnest('{0,1,2,3,10,11,12}'::int[]) as lane (lane),
          lateral (select created_at from outbox where outbox.slice = slice.slice and outbox.lane = lane.lane
                   order by seq limit 1) as head) as outbox_seconds,
    (select count(*)
     from generate_series(0, (select shards from install) - 1) as slice,
          lateral (select from outbox where outbox.slice = slice.slice and lane = 4 limit %(cap)s) as refused) as refused,
    (select count(*)
     from (select run_id from slots limit %(cap)s) as slot
     where (select finished_at is null or finished_at >= %(settled)s from runs where id = slot.run_id limit 1) is not true)
        as slots,
    (select count(*)
     from (select run_id from limit_slots limit %(cap)s) as slot
     where (select finished_at is null or finished_at >= %(settled)s from runs where id = slot.run_id limit 1) is not true)
        as limit_slots,
    (select count(*)
     from (select run_id, waits.scheduled_for from waits limit %(cap)s) as wait
     where (select finished_at is null or finished_at >= %(settled)s
            from runs where id = wait.run_id and runs.scheduled_for = wait.scheduled_for limit 1) is not true) as waits
