-- How many rows wait and are parked, counted up to a cap, and for how many seconds the first has waited.
select (select count(*) from (
            select from noonmark_outbox where parked_at is null limit %(cap)s) as waiting),
       (select count(*) from (
            select from noonmark_outbox where parked_at is not null limit %(cap)s) as parked),
       (select extract(epoch from clock_timestamp() - created_at)::float8
        from noonmark_outbox where parked_at is null order by seq limit 1)
