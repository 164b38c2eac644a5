"""Script jobs: executables on the worker's machine that the operator allows."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any, Final

import orjson

from noonmark.attempts.context import context_of
from noonmark.attempts.outcomes import failed, rejected, succeeded
from noonmark.attempts.running_attempt import NotBegunError, RunningAttempt
from noonmark.attempts.secrets import SecretError, SecretResolver, refuse_references
from noonmark.core.failures import Failure
from noonmark.core.states import DeliverySemantics
from noonmark.handlers.results import ResultError, encode_result
from noonmark.store.runs.finish import Outcome
from noonmark.worker.kinds.script_failures import failure_text
from noonmark.worker.processes.spawn_messages import Ending, SpawnRequest
from noonmark.worker.processes.spawned_child import Child, run_to_completion
from noonmark.worker.processes.spawning import START_TRIES, ChildLauncher

PASSED_ON: Final = ("PATH", "LANG", "LC_ALL", "TZ", "HOME")
"""The only variables of the worker's environment that a script receives."""

_DEFAULT_PATH: Final = "/usr/local/bin:/usr/bin:/bin"


class ScriptKind:
    """Executes the command of each attempt and evaluates its exit code. Not a sandbox: see docs/kinds.md."""

    def __init__(
        self,
        launcher: ChildLauncher,
        secrets: SecretResolver,
        *,
        allowed: Sequence[str],
        grace_seconds: float,
    ) -> None:
        """Create the kind.

        Args:
            launcher: starts and stops child processes.
            secrets: resolves secrets in env and stdin.
            allowed: absolute paths of executables that may run, or of their folders; `*` allows all.
            grace_seconds: time between SIGTERM and SIGKILL.
        """
        self._launcher = launcher
        self._secrets = secrets
        self._allowed = tuple(place if place == "*" else os.path.realpath(place) for place in allowed)
        self._grace_seconds = grace_seconds
        self._removals: set[asyncio.Future[None]] = set()
        self._passed_on = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        self._passed_on.setdefault("PATH", _DEFAULT_PATH)

    async def run(self, attempt: RunningAttempt) -> Outcome:
        """Execute the command; return when no process of it is left.

        Raises:
            NotBegunError: it was not started, because the lease of the worker may be over, or because one
                supervisor after the other did not take it.
        """
        payload: Mapping[str, Any] = attempt.payload
        argv: list[str] = payload["argv"]
        path, refusal = self._executable(argv[0])
        if path is None:
            return rejected(attempt, refusal)
        try:
            refuse_references(argv, "argv")
            env = self._secrets.fill(attempt, payload["env"])
            stdin = _text(self._secrets.fill(attempt, payload.get("stdin")))
        except SecretError as error:
            return failed(attempt, str(error), failure=Failure(retryable=error.retryable))
        try:
            folder = tempfile.mkdtemp(prefix="noonmark-")
        except OSError as error:
            return _not_started(attempt, error)
        try:
            request = SpawnRequest(
                path,
                argv,
                {**self._passed_on, "TMPDIR": folder, **env, **_about(attempt)},
                payload.get("cwd") or folder,
                payload["limits"],
                confined=True,
            )
            return await self._execute(attempt, request, stdin)
        finally:
            # This may take long: it must not time out, or lose, an attempt whose script has ended.
            removal = asyncio.ensure_future(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))
            self._removals.add(removal)
            removal.add_done_callback(self._removals.discard)

    async def close(self) -> None:
        """Wait until the folders of all attempts are removed."""
        await asyncio.gather(*self._removals)

    async def _execute(self, attempt: RunningAttempt, request: SpawnRequest, stdin: bytes) -> Outcome:
        # A file without a name: the script reads at its own pace, and no task has to write to a pipe.
        try:
            file = os.fdopen(os.memfd_create("stdin"), "wb")
        except OSError as error:
            return _not_started(attempt, error)
        with file:
            file.write(stdin)
            file.flush()
            file.seek(0)
            for _ in range(START_TRIES):
                file.seek(0)
                attempt.ensure_may_begin()
                _await_begin(attempt)
                child = self._launcher.spawn(request, file.fileno(), attempt=attempt)
                ending, last_line = await self._await_end(attempt, child)
                if not ending.untaken:
                    return _outcome(attempt, ending, last_line)
                if self._launcher.hurry.is_set():
                    break
        raise NotBegunError

    async def _await_end(self, attempt: RunningAttempt, child: Child) -> tuple[Ending, str]:
        """Return how a script ended, and the last line of its output; stop it if this task is cancelled."""
        try:
            if await asyncio.shield(child.begun):
                attempt.start_clock()
            ending = await asyncio.shield(child.ended)
        except asyncio.CancelledError:
            await run_to_completion(child.stop(self._grace_seconds))
            raise
        finally:
            _settle_begin(attempt, child)
            last_line = child.end_output()
            child.close()
        return ending, last_line

    def _executable(self, name: str) -> tuple[str | None, str]:
        """Find an executable that may run; otherwise return None and the reason."""
        if not self._allowed:
            return None, (
                "this worker runs no scripts: set NOONMARK_SCRIPTS to the executables that may run, or to "
                "their folders"
            )
        if "/" in name and not name.startswith("/"):
            return None, f"{name!r} is a relative path: use an absolute path, or a name that is in PATH"
        path = shutil.which(name, path=self._passed_on["PATH"])
        if path is None:
            return None, f"this worker has no executable {name!r}"
        real = Path(os.path.realpath(path))
        if "*" in self._allowed or any(real.is_relative_to(place) for place in self._allowed):
            return path, ""
        return None, f"NOONMARK_SCRIPTS of this worker does not allow {str(real)!r}"


def _not_started(attempt: RunningAttempt, error: OSError) -> Outcome:
    return failed(attempt, f"the script could not be started: {error.strerror or error}")


def _await_begin(attempt: RunningAttempt) -> None:
    """Stop the timeout until the supervisor confirms the script: before, it may not have begun."""
    attempt.hold_clock()
    if attempt.delivery is DeliverySemantics.AT_MOST_ONCE:
        # It may have begun, too: if it is handed back meanwhile, it must not be started again.
        attempt.began_at = time.monotonic()


def _settle_begin(attempt: RunningAttempt, child: Child) -> None:
    """Note whether a script has begun, which decides if an `at_most_once` run may be started again."""
    if child.begun.done() and child.begun.result():
        attempt.began_at = attempt.began_at or time.monotonic()
    elif child.ended.done():
        attempt.began_at = 0.0


def _outcome(attempt: RunningAttempt, ending: Ending, last_line: str) -> Outcome:
    payload: Mapping[str, Any] = attempt.payload
    if ending.code in payload["success_exit_codes"]:
        return succeeded(attempt, _result(ending.code, payload["result"], last_line))
    exited = ending.code is not None and ending.code >= 0
    facts = Failure(exit_code=ending.code if exited else None, unknown=ending.started and not exited)
    log = attempt.extras.log if attempt.extras is not None else None
    text = failure_text(ending, payload["limits"], log.stderr.text() if log is not None else "")
    return failed(attempt, f"the script {text}", failure=facts)


def _result(code: int | None, wanted: str, last_line: str) -> dict[str, Any]:
    result: dict[str, Any] = {"exit_code": code}
    if wanted == "json":
        try:
            output = orjson.loads(last_line)
            # The exit code decides the outcome: output that cannot be stored does not make it a failure.
            encode_result({**result, "output": output})
        except (orjson.JSONDecodeError, ResultError):
            return result
        result["output"] = output
    return result


def _about(attempt: RunningAttempt) -> dict[str, str]:
    """Return the variables that describe the run to a script."""
    context = context_of(attempt)
    trace = {} if context.traceparent is None else {"TRACEPARENT": context.traceparent}
    return trace | {
        "NOONMARK_RUN_ID": str(context.run_id),
        "NOONMARK_JOB_ID": str(context.job_id),
        "NOONMARK_NAMESPACE": context.namespace,
        "NOONMARK_ATTEMPT": str(context.attempt),
        "NOONMARK_FENCE": str(context.fence),
        "NOONMARK_IDEMPOTENCY_KEY": context.idempotency_key,
        "NOONMARK_SCHEDULED_FOR": context.scheduled_for.astimezone(UTC).isoformat(),
    }


def _text(stdin: Any) -> bytes:
    if stdin is None:
        return b""
    return stdin.encode("utf-8", "surrogateescape") if isinstance(stdin, str) else orjson.dumps(stdin)
