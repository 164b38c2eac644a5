-- What the live workers of each pool say they can run; workers that say the same count once.
select distinct pool, catalogue from workers where lapsed_at is null and left_at is null
