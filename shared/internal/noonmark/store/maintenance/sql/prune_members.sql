-- Members that died without a word.
delete from members where beat_at < noonmark_now() - interval '1 hour'
