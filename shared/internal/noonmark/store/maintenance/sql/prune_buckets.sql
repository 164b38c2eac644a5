-- Deletes buckets that were not used for so long that they are full: no limit takes longer to fill one.
delete from buckets where filled_at < noonmark_now() - make_interval(days => %(days)s)
