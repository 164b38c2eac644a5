-- The number of bytes of each stream of an attempt so far, so that a reader can continue where it was. Null in rows of
-- release 0.2, which writes only complete output.
alter table attempt_logs
    add column stdout_end bigint,
    add column stderr_end bigint,
    add column log_end bigint;
