-- Topics whose groups have passed everything acknowledged before `passed_until`, measured lately.
select topic, passed_until from topic_progress
where measured_at > noonmark_now() - interval '5 minutes'
