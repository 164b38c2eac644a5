-- A cancelled name is guarded for as long as an older create could still be redelivered.
delete from tombstones where made_at < noonmark_now() - make_interval(days => %(days)s)
