-- Deletes tombstones of cancelled names once no older create can be redelivered.
delete from tombstones where made_at < noonmark_now() - make_interval(days => %(days)s)
