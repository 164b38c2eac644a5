-- Whether any run waits for room: all that a promotion pass costs where nothing does. The order makes it one index probe.
select key from waits where key is not null order by key limit 1
