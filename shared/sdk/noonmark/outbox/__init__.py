"""Enqueues jobs in an application's own transactions.

    from noonmark import outbox

    with Session(engine) as session, session.begin():
        session.add(order)
        outbox.add(session, {"type": "python", "handler": "mails.confirm", "payload": order_id})

The job exists if, and only if, the application's transaction commits: `add` writes to a table in the
application's database, and a dispatcher relays each row exactly once.
"""

from noonmark.outbox.adding import add, add_async
from noonmark.outbox.errors import JobRefusedError, OutboxError
from noonmark.outbox.table import create_table_sql

__all__ = ["JobRefusedError", "OutboxError", "add", "add_async", "create_table_sql"]
