"""Python handlers for processes, most of them hostile: tests let workers load them as a module.

What a handler must show lies in the folder that the payload's `folder` names.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from noonmark.handlers import Context, handler
from noonmark.handlers.exceptions import Snooze

LOOK_SECONDS = 0.01


def note(ctx: Context, name: str, text: str = "") -> None:
    """Write a file for the test, whole or not at all."""
    folder = Path(ctx.payload["folder"])
    (folder / f".{name}").write_text(text)
    (folder / f".{name}").rename(folder / name)


def wait(ctx: Context) -> None:
    """Wait for the file `go`."""
    while not (Path(ctx.payload["folder"]) / "go").exists():
        time.sleep(LOOK_SECONDS)


@handler("child.pid", run="process")
def pid(ctx: Context) -> int:
    """Say which process it was."""
    return os.getpid()


@handler("child.asynchronous", run="process")
async def asynchronous(ctx: Context) -> dict[str, Any]:
    """Run on a loop of the child."""
    await asyncio.sleep(0)
    return {"key": ctx.idempotency_key, "payload": ctx.payload, "deadline": ctx.deadline}


@handler("child.waits", run="process")
def waits(ctx: Context) -> int:
    """Begin, and end when it may."""
    note(ctx, f"began-{ctx.run_id}", str(os.getpid()))
    wait(ctx)
    if "exit" in ctx.payload:
        os._exit(ctx.payload["exit"])
    return os.getpid()


@handler("child.cleans_up", run="process")
def cleans_up(ctx: Context) -> None:
    """Be ended, and clean up."""
    try:
        note(ctx, "began", str(os.getpid()))
        wait(ctx)
    finally:
        note(ctx, "cleaned")


@handler("child.deaf", run="process")
def deaf(ctx: Context) -> None:
    """Ignore SIGTERM, as a process below it does."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('x', flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as below:
        assert below.stdout is not None
        below.stdout.readline()
        note(ctx, "began", f"{os.getpid()} {below.pid}")
        wait(ctx)


@handler("child.exits", run="process")
def exits(ctx: Context) -> None:
    """End the process without a word."""
    print("last words", flush=True)
    os._exit(7)


@handler("child.kills_itself", run="process")
def kills_itself(ctx: Context) -> None:
    """End the process by a signal."""
    os.kill(os.getpid(), signal.SIGKILL)


@handler("child.prints", run="process")
def prints(ctx: Context) -> None:
    """Print 10 MB in one line, and what is not UTF-8, and NUL."""
    os.write(2, b"\xff\x00 no text")
    sys.stdout.write("y" * 10_000_000)


@handler("child.forks", run="process")
def forks(ctx: Context) -> int:
    """Come back twice."""
    return os.fork()


@handler("child.leaves", run="process")
def leaves(ctx: Context) -> list[int]:
    """Leave a process behind that has left its session and has no parent."""
    code = "import os, time; os.setsid() if not os.fork() else os._exit(0); print(os.getpid(), flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        return [os.getpid(), int(first.stdout.readline())]


@handler("child.raises", run="process")
def raises(ctx: Context) -> None:
    """Fail."""
    raise ConnectionError("no line")


@handler("child.snoozes", run="process")
def snoozes(ctx: Context) -> None:
    """Go on later."""
    raise Snooze(in_=30, reason="too early")


@handler("child.tells", run="process")
def tells(ctx: Context) -> dict[str, Any]:
    """Use everything that the context offers."""
    before = ctx.last_checkpoint
    ctx.log("half way", count=3)
    ctx.progress(0.5, "half")
    ctx.checkpoint({"at": 3})
    ctx.emit("tests.events", {"a": 1})
    print(f"the token is {ctx.secret('token')}")
    return {"before": before, "after": ctx.last_checkpoint}


@handler("child.speaks_nonsense", run="process")
def speaks_nonsense(ctx: Context) -> None:
    """Write into the channel to the worker."""
    os.write(3, b"\xff" * 100)
    time.sleep(600)


@handler("child.thread")
def on_a_thread(ctx: Context) -> int:
    """Run wherever it is put."""
    return os.getpid()


@handler("child.tells_much", run="process")
def tells_much(ctx: Context) -> list[str]:
    """Say more than a message can hold, and what is not text."""
    ctx.log("x" * 5_000_000 + "end")
    ctx.log("half \ud800")
    ctx.progress(0.5, "half \ud800")
    told = []
    for attempt in (
        lambda: ctx.emit("tests.events", "x" * 5_000_000),
        lambda: ctx.secret("x" * 5_000_000),
    ):
        try:
            attempt()
        except Exception as error:  # noqa: BLE001 - the test looks at what it is
            told.append(type(error).__name__)
    return told


@handler("child.leaves_a_thread", run="process")
def leaves_a_thread(ctx: Context) -> int:
    """Leave a thread behind that goes on telling until it is told that it may not."""
    if ctx.payload.get("gate"):
        wait(ctx)

    def go_on() -> None:
        try:
            while True:
                ctx.log("from before")
                ctx.emit("tests.events", 1)
                time.sleep(LOOK_SECONDS)
        except RuntimeError as error:
            note(ctx, "refused", str(error))

    threading.Thread(target=go_on, daemon=True).start()
    return os.getpid()


@handler("child.litters", run="process")
def litters(ctx: Context) -> int:
    """Change all that handlers of a process share."""
    folder = Path(ctx.payload["folder"]) / "gone"
    folder.mkdir()
    os.chdir(folder)
    folder.rmdir()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.alarm(1)
    os.environ.clear()
    return os.getpid()


@handler("child.looks_around", run="process")
def looks_around(ctx: Context) -> list[Any]:
    """Say what there is."""
    return [
        os.getpid(),
        str(Path.cwd()),
        sorted(os.environ),
        callable(signal.getsignal(signal.SIGTERM)),
        signal.getitimer(signal.ITIMER_REAL)[0],
    ]


@handler("child.closes_its_streams", run="process")
def closes_its_streams(ctx: Context) -> int:
    """Close what print writes to."""
    sys.stdout.close()
    return os.getpid()


@handler("child.speaks_for_its_context", run="process")
def speaks_for_its_context(ctx: Context) -> None:
    """Say what the context would have refused."""
    data = json.dumps(ctx.payload["message"]).encode()
    os.write(3, len(data).to_bytes(4, "big") + data)
    time.sleep(600)


class Broken(Snooze):
    """An order that was never given its parts."""

    def __init__(self) -> None:
        pass


@handler("child.raises_what_is_broken", run="process")
def raises_what_is_broken(ctx: Context) -> None:
    """Raise it."""
    raise Broken
