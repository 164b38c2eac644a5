-- The releases of the zone data that this installation has planned with, the active one first.
select version, active, activated_at, timers, moved from zone_data order by active desc, activated_at desc nulls last, id
