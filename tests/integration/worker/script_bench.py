"""Scripts as real processes, executed by the executors of a worker."""

from __future__ import annotations

import shutil

from tests.unit.worker.bench import Bench

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.attempts.secrets import SecretResolver
from noonmark.schemas.jobs.script_payload import ScriptPayload
from noonmark.store.runs.finish import Outcome
from noonmark.worker.kinds.script import ScriptKind

SH = shutil.which("sh")


class Scripts(Bench):
    def __init__(self, allowed=("*",), grace_seconds=0.2, environment=None) -> None:
        secrets = SecretResolver(None, environment or {})
        super().__init__(
            kinds=lambda launcher: {
                "script": ScriptKind(launcher, secrets, allowed=allowed, grace_seconds=grace_seconds)
            },
            grace_seconds=grace_seconds,
            environment=environment,
        )

    def start(self, *argv: str, timeout_seconds: float = 60.0, delivery=None, **payload) -> RunningAttempt:
        spelt = ScriptPayload.model_validate({"argv": list(argv), **payload}).request()
        more = {} if delivery is None else {"delivery": delivery}
        return self.begin(kind="script", payload=spelt, timeout_seconds=timeout_seconds, **more)

    def script(self, *argv: str, **payload) -> Outcome:
        return self.end(self.start(*argv, **payload))

    def shell(self, text: str, **payload) -> Outcome:
        return self.script(SH, "-c", text, **payload)
