-- Deletes old rejections, the oldest first and a bounded number at a time: ids rise with time, so no index by time is
-- needed.
delete from rejections
where ctid = any (array(
    select oldest.ctid
    from (select ctid, received_at from rejections order by id limit 5000) as oldest
    where oldest.received_at < noonmark_now() - make_interval(days => %(days)s)
))
