"""The parent's side of `noonmark.worker.child`: one run, alone, where it can harm nothing else."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import orjson

from noonmark.core.words import AttemptOutcome, RunState
from noonmark.handlers import Context
from noonmark.store.work import Outcome
from noonmark.worker.hand import Hand
from noonmark.worker.outcomes import failed, timed_out

LOSSES_BEFORE_ISOLATION = 2
_PIPE_BYTES = 256 * 1024


class Isolation:
    """Runs handlers in child processes, each in a session of its own that is killed as a whole."""

    def __init__(self, modules: tuple[str, ...], path: Path | None) -> None:
        """Take what a child must import: the same modules as the worker."""
        self._modules = modules
        self._path = path

    def run(self, hand: Hand, context: Context) -> Outcome:
        """Run a handler in a child and wait for it, at most for the run's timeout."""
        order = asdict(context)
        order.pop("_logger", None)
        body = orjson.dumps(
            {
                "modules": self._modules,
                "path": str(self._path) if self._path else None,
                "handler": hand.run.handler,
                "context": order,
            }
        )
        read_end, write_end = os.pipe()
        # Room for the largest answer: the child never waits for us to read.
        fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        with subprocess.Popen(  # noqa: S603 - our own module; the order goes through a pipe
            [sys.executable, "-m", "noonmark.worker.child", str(write_end), str(os.getpid())],
            stdin=subprocess.PIPE,
            pass_fds=(write_end,),
            start_new_session=True,
        ) as child:
            os.close(write_end)
            with os.fdopen(read_end, "rb") as answers:
                try:
                    child.communicate(body, timeout=hand.timeout_seconds)
                except subprocess.TimeoutExpired:
                    _kill(child)
                    return timed_out(hand)
                except BrokenPipeError:
                    child.wait()
                # The child is gone; a grandchild that keeps the pipe open must not keep us.
                os.set_blocking(read_end, False)
                answer = answers.read()
            _kill(child)
        return _outcome(hand, child.returncode, answer)


def _outcome(hand: Hand, code: int, answer: bytes | None) -> Outcome:
    if not answer:
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return failed(hand, f"the handler's process {how} without an answer")
    said = orjson.loads(answer)
    if "error" in said:
        return failed(hand, said["error"], retryable=said["retryable"])
    return Outcome(
        hand.run,
        hand.fence,
        RunState.SUCCEEDED,
        AttemptOutcome.SUCCEEDED,
        result=said["result"],
        pool=hand.pool,
    )


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End whatever is left of the child's session."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
