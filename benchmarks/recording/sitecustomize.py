"""Records the functions of noonmark that a service enters, for `benchmarks.run_path`.

The folder is on the PYTHONPATH of the services, and Python imports `sitecustomize` at the start of every
process. This one records only in the services that RUN_PATH_SERVICES names. It also removes every other
copy of noonmark from the module path, so that the tree of RUN_PATH_TREE is measured whatever is installed.

`benchmarks.run_path` writes the number of the current window to the file `window` in RUN_PATH_FOLDER.
When the number changes, this process writes what the last window recorded to `<service>-<number>.json`
and begins the next one. A file, not a signal: a Python signal handler would wait for the main thread,
which may be in a call of librdkafka.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

_POLL_SECONDS: Final = 0.02


def _keep_one_tree(tree: Path) -> None:
    sys.path[:] = [
        entry
        for entry in sys.path
        if not (Path(entry) / "noonmark").is_dir() or Path(entry).is_relative_to(tree)
    ]


class _Recorder:
    """Keeps the first instant at which each function was entered in the current window."""

    def __init__(self, service: str, tree: Path, folder: Path) -> None:
        self._service, self._folder = service, folder
        self._roots = tuple(f"{tree}/{root}/" for root in ("services", "shared", "schemas"))
        self._seen: dict[CodeType, float] = {}

    def start(self) -> None:
        threading.Thread(target=self._switch_windows, name="run-path", daemon=True).start()
        threading.setprofile(self._on_event)
        sys.setprofile(self._on_event)

    def _on_event(self, frame: FrameType, event: str, _argument: Any) -> None:
        # A coroutine or generator that resumes counts as entered.
        if event == "call" and frame.f_code not in self._seen:
            self._seen[frame.f_code] = time.time()

    def _switch_windows(self) -> None:
        current = ""
        while True:
            found = self._window()
            if found and found != current:
                seen, self._seen = self._seen, {}
                if current:
                    self._write(current, seen)
                current = found
                (self._folder / f"{self._service}-{current}.begun").touch()
            time.sleep(_POLL_SECONDS)

    def _window(self) -> str:
        try:
            return (self._folder / "window").read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def _write(self, window: str, seen: dict[CodeType, float]) -> None:
        calls = [
            {"file": code.co_filename, "function": code.co_qualname, "at": at}
            for code, at in list(seen.items())
            # Not the bodies of modules, nor lambdas and comprehensions, which are parts of their functions.
            if code.co_filename.startswith(self._roots) and not code.co_name.startswith("<")
        ]
        written = self._folder / f"{self._service}-{window}.part"
        written.write_text(json.dumps(calls), encoding="utf-8")
        written.rename(written.with_suffix(".json"))


def _service() -> str | None:
    """Return the name of the service that this process is, if it is recorded."""
    arguments = list(sys.orig_argv)
    wanted = os.environ.get("RUN_PATH_SERVICES", "").split()
    program = next((one for one in ("noonmark.cli", "noonmark.cli.main") if one in arguments), None)
    if program is None:
        return None
    rest = arguments[arguments.index(program) + 1 :]
    return rest[0] if rest and rest[0] in wanted else None


if "RUN_PATH_TREE" in os.environ:
    _tree = Path(os.environ["RUN_PATH_TREE"])
    _keep_one_tree(_tree)
    if (_name := _service()) is not None:
        _Recorder(_name, _tree, Path(os.environ["RUN_PATH_FOLDER"])).start()
