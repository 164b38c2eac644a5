-- Counts waiting runs by reason, for metrics; sent rarely.
select reason, count(*) from waits group by reason
