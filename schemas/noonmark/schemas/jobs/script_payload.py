"""The payload of a script job: the command to execute, and which exit codes count as success."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, Field

from noonmark.schemas.jobs.http_payload import wrong
from noonmark.schemas.problems import other_names
from noonmark.schemas.problems.pydantic_errors import Document, Expected, PayloadDocument, without_secrets

MAX_ARGUMENTS: Final = 256
MAX_ARGUMENT_CHARS: Final = 16 * 1024
MAX_ARGUMENTS_BYTES: Final = 64 * 1024
MAX_VARIABLES: Final = 100
MAX_VARIABLES_BYTES: Final = 64 * 1024
VARIABLE_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_]*$"
NO_NUL_PATTERN: Final = r"^[^\x00]*$"

_RESERVED: Final = ("NOONMARK_", "LD_", "DYLD_", "PYTHON", "GLIBC_", "MALLOC_", "BASH_FUNC_")
"""Prefixes of variables that noonmark sets, or that make a loader or interpreter load other code."""

_RESERVED_NAMES: Final = frozenset(
    {
        "BASH_ENV",
        "ENV",
        "IFS",
        "SHELLOPTS",
        "BASHOPTS",
        "PERL5LIB",
        "PERL5OPT",
        "RUBYOPT",
        "RUBYLIB",
        "NODE_OPTIONS",
    }
)


def _check_argv(argv: list[str]) -> list[str]:
    if not argv[0].strip():
        raise wrong("names no executable")
    if sum(len(part.encode("utf-8", "surrogatepass")) + 1 for part in argv) > MAX_ARGUMENTS_BYTES:
        raise wrong(f"is longer than {MAX_ARGUMENTS_BYTES} bytes in total")
    return argv


def _check_env(env: dict[str, str]) -> dict[str, str]:
    for name in env:
        if name.startswith(_RESERVED) or name in _RESERVED_NAMES:
            raise wrong(
                f"{name} cannot be set by a job",
                "names that do not start with " + ", ".join(_RESERVED),
            )
    if (
        sum(len(f"{n}={v}".encode("utf-8", "surrogatepass")) + 1 for n, v in env.items())
        > MAX_VARIABLES_BYTES
    ):
        raise wrong(f"is longer than {MAX_VARIABLES_BYTES} bytes in total")
    return env


Argument = Annotated[str, Field(max_length=MAX_ARGUMENT_CHARS, pattern=NO_NUL_PATTERN)]
VariableName = Annotated[str, Field(max_length=200, pattern=VARIABLE_PATTERN)]
ExitStatus = Annotated[int, Field(ge=0, le=255)]


class ScriptLimits(Document):
    """Kernel limits of a script. All but `processes` apply to each of its processes."""

    cpu_seconds: Annotated[
        int | None,
        Field(ge=1, le=86_400, description="CPU time of one process, in seconds."),
        Expected("an integer from 1 to 86400"),
    ] = None
    memory_bytes: Annotated[
        int | None,
        Field(ge=1024 * 1024, le=1 << 50, description="Address space of one process, in bytes."),
        Expected("an integer of bytes, at least 1048576"),
    ] = None
    open_files: Annotated[
        int | None,
        Field(ge=8, le=1_000_000, description="Most open files of one process."),
        Expected("an integer from 8 to 1000000"),
    ] = None
    processes: Annotated[
        int | None,
        Field(
            ge=1,
            le=100_000,
            description="Most processes of the script at once, including itself; a script with more is "
            "killed.",
        ),
        Expected("an integer from 1 to 100000"),
    ] = None
    file_bytes: Annotated[
        int | None,
        Field(ge=0, le=1 << 50, description="Largest file that a process can write, in bytes."),
        Expected("an integer of bytes"),
    ] = None


class ScriptPayload(PayloadDocument):
    """The command that a script job executes, without a shell."""

    synonyms: ClassVar[Mapping[str, str]] = other_names.SCRIPT

    purpose: ClassVar[str] = "an object with argv, the executable and its arguments"

    argv: Annotated[
        list[Argument],
        Field(
            min_length=1,
            max_length=MAX_ARGUMENTS,
            description="The executable and its arguments, passed unchanged and without a shell. The "
            "executable is an absolute path, or a name that is searched in the worker's PATH.",
            examples=[["/opt/jobs/close-month", "--month", "2026-05"]],
        ),
        AfterValidator(_check_argv),
        without_secrets("the secret in env or stdin, which other users cannot see"),
        Expected(f"a list of 1 to {MAX_ARGUMENTS} strings without U+0000, the first an executable"),
    ]
    env: Annotated[
        dict[VariableName, Argument],
        Field(
            max_length=MAX_VARIABLES,
            description="Environment variables, in addition to NOONMARK_* and the few that the worker "
            "passes on.",
        ),
        AfterValidator(_check_env),
        Expected(f"an object of at most {MAX_VARIABLES} variables; names of letters, digits and _"),
    ] = Field(default_factory=dict)
    stdin: Annotated[
        Any,
        Field(
            description="Standard input: a string is passed unchanged, any other value as JSON. null: empty."
        ),
    ] = None
    cwd: Annotated[
        str | None,
        Field(
            max_length=4096,
            pattern=r"^/[^\x00]*$",
            description="Working directory, absolute. Default: an empty one that is removed afterwards.",
        ),
        Expected("an absolute path"),
    ] = None
    limits: Annotated[
        ScriptLimits | None,
        Field(description="Kernel limits. Default: those of the worker."),
        Expected("an object with cpu_seconds, memory_bytes, open_files, processes or file_bytes"),
    ] = None
    success_exit_codes: Annotated[
        list[ExitStatus],
        Field(min_length=1, max_length=50, description="Exit codes that count as success."),
        Expected("a list of exit codes from 0 to 255"),
    ] = Field(default_factory=lambda: [0])
    result: Annotated[
        Literal["exit_code", "json"],
        Field(
            description="What is stored as the run's result: the exit code only, or also the last line of "
            "standard output if that is JSON."
        ),
        Expected("exit_code or json"),
    ] = "exit_code"

    def request(self) -> Mapping[str, object]:
        """Return the payload with all defaults filled in, as workers read it."""
        limits = self.limits.model_dump(exclude_none=True) if self.limits is not None else {}
        written: dict[str, object] = {"argv": self.argv, "env": self.env}
        if self.stdin is not None:
            written["stdin"] = self.stdin
        if self.cwd is not None:
            written["cwd"] = self.cwd
        return {
            **written,
            "limits": limits,
            "success_exit_codes": self.success_exit_codes,
            "result": self.result,
        }
