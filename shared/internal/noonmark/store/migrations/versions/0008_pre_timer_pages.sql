-- Pages of timers also hold the next version of each: a burst advances all timers of a page in one transaction, and those that
-- move to another page need more than twice the WAL. Pages that exist are filled anew as their timers are replaced.
alter table timers set (fillfactor = 45);
