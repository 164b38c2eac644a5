-- Reads the catalogues of the live workers of each pool; equal catalogues are returned once.
select distinct pool, catalogue from workers where lapsed_at is null and left_at is null
