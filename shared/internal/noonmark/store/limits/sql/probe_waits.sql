-- Whether any run waits for capacity: all that a promotion pass costs if none does. The order makes it one index probe.
select key from waits where key is not null order by key limit 1
