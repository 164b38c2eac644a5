-- Deletes entries of the audit log after their retention, the oldest first and a bounded number at a time: ids rise with
-- time, so no index by time is needed. The caller has set in this transaction that it prunes.
delete from audit_log
where ctid = any (array(
    select oldest.ctid
    from (select ctid, at from audit_log order by id limit %(limit)s) as oldest
    where oldest.at < noonmark_now() - make_interval(days => %(days)s)
))
