"""An application that enqueues a job with its own row, and dies at once: before its commit, or after it."""

import os
import signal
import sys

from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

from noonmark import outbox

if __name__ == "__main__":
    url, moment = sys.argv[1:]
    with Session(create_engine(url)) as session:
        session.execute(text("insert into orders (item) values ('from a client')"))
        outbox.add(
            session, {"type": "python", "handler": "mails.confirm", "payload": {"order": "from a client"}}
        )
        if moment == "after":
            session.commit()
        os.kill(os.getpid(), signal.SIGKILL)
