-- How many runs wait, by reason: for metrics, seldom.
select reason, count(*) from waits group by reason
