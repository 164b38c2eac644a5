-- Raises the ledger floor. Planning and submissions before it are refused.
update install set ledger_floor = greatest(ledger_floor, %(floor)s)
where ledger_floor < %(floor)s
returning ledger_floor
