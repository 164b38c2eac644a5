-- Records that a process is alive, and that it makes progress unless something in it is stuck.
insert into process_progress as process (service, id, host, pid, seen_at, progressed_at, stuck)
values (%(service)s, %(id)s, %(host)s, %(pid)s, noonmark_now(), noonmark_now(), %(stuck)s)
on conflict (service, id) do update
set seen_at = excluded.seen_at, stuck = excluded.stuck,
    progressed_at = case when excluded.stuck is null then excluded.seen_at else process.progressed_at end
