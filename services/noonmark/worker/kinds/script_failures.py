"""How a script failed, with the limit that it exceeded as far as that can be known from outside.

The kernel reports only `file_bytes` and `cpu_seconds` to a parent, by the signal that kills the process. A
call that fails because of `memory_bytes` or `open_files`, or of `file_bytes` where the script ignores the
signal, is an error like any other to the script, and no counter of the process shows it afterwards. For
these, what the script wrote about its error is the only evidence.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from typing import Final

from noonmark.worker.processes.spawn_messages import Ending

_KILLED_FOR: Final[Mapping[int, tuple[str, str]]] = {
    signal.SIGXCPU: ("cpu_seconds", "it used more than {} s of CPU time"),
    signal.SIGXFSZ: ("file_bytes", "it wrote a file of more than {} bytes"),
}
_SHELL_SIGNAL: Final = 128
"""A shell ends with this plus the number of the signal that killed its last command."""

_EVIDENCE_CHARS: Final = 4096
"""Characters at the end of standard error that are searched: what ended a script is among its last words."""

_EVIDENCE: Final[Mapping[str, re.Pattern[str]]] = {
    "file_bytes": re.compile("File too large|File size limit exceeded"),
    # Without the limit of the whole system. `Error 24` is how the dynamic loader spells it.
    "open_files": re.compile(r"Too many open files(?! in system)|Error 24\b"),
    "memory_bytes": re.compile(
        r"\bMemoryError\b|[Cc]annot allocate memory|std::bad_alloc|\bOutOfMemoryError\b|memory exhausted"
        # Not the heap of JavaScript, which has a limit of its own.
        r"|\bOut of memory\b|runtime: out of memory|failed to map segment from shared object"
    ),
}


def failure_text(ending: Ending, limits: Mapping[str, int], stderr: str) -> str:
    """Return how a script failed, as the end of a sentence.

    Args:
        ending: how it ended.
        limits: the limits that its job sets.
        stderr: the end of what it wrote to standard error.
    """
    if ending.crowded:
        return f"was killed: it had more than {limits['processes']} processes (limits.processes)"
    if ending.code is None:
        return ending.error
    number = _limit_signal(-ending.code, ending, limits)
    name, words = _KILLED_FOR.get(number, ("", ""))
    if name in limits:
        return f"was killed: {words.format(limits[name])} (limits.{name})"
    probable = _probable_limit(ending, limits, stderr)
    if probable is not None:
        limit, evidence = probable
        return f"{ending.text()}, probably because of limits.{limit} = {limits[limit]}: {evidence}"
    if number == signal.SIGKILL:
        return "was killed by SIGKILL; the kernel does this when memory runs out"
    return ending.text()


def _limit_signal(number: int, ending: Ending, limits: Mapping[str, int]) -> int:
    """Return the signal, or SIGXCPU if it was the SIGKILL that follows where SIGXCPU is ignored."""
    over = ending.cpu_seconds >= limits.get("cpu_seconds", float("inf"))
    return signal.SIGXCPU if number == signal.SIGKILL and over else number


def _probable_limit(ending: Ending, limits: Mapping[str, int], stderr: str) -> tuple[str, str] | None:
    """Return the limit that the evidence points at, and the evidence; None without any."""
    number = _limit_signal((ending.code or 0) - _SHELL_SIGNAL, ending, limits)
    name, _ = _KILLED_FOR.get(number, ("", ""))
    if name in limits:
        return (
            name,
            f"the exit code is that of a shell whose command was killed by {signal.Signals(number).name}",
        )
    tail = stderr[-_EVIDENCE_CHARS:]
    found = [
        (match.start(), name, match[0])
        for name, pattern in _EVIDENCE.items()
        if name in limits
        for match in pattern.finditer(tail)
    ]
    if not found:
        return None
    _, name, said = max(found)
    return name, f'its standard error says "{said}"'
