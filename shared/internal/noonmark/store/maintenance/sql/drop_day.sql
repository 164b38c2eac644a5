-- Drops a ledger day with its dependent rows; false if a row is unfinished, or extends past the floor. The function locks
-- the day first, and belongs to the owner of the tables: a service may have no right to drop one.
select noonmark_drop_day(%(day)s, %(first_one_off)s)
