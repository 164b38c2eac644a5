"""The payload of a script job: what is executed on the worker's machine, and which exits count as success."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, Field

from noonmark.schemas.jobs.http_payload import wrong
from noonmark.schemas.problems.pydantic_errors import Document, Expected, PayloadDocument, without_secrets

MAX_ARGUMENTS: Final = 256
MAX_ARGUMENT_CHARS: Final = 16 * 1024
MAX_ARGUMENTS_BYTES: Final = 64 * 1024
MAX_VARIABLES: Final = 100
MAX_VARIABLES_BYTES: Final = 64 * 1024
VARIABLE_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_]*$"
NO_NUL_PATTERN: Final = r"^[^\x00]*$"

_RESERVED: Final = ("NOONMARK_", "LD_", "DYLD_", "PYTHON", "GLIBC_", "MALLOC_", "BASH_FUNC_")
"""Beginnings of variables that noonmark sets, or by which a loader or interpreter takes in other code."""

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
        raise wrong(f"is longer than {MAX_ARGUMENTS_BYTES} bytes together")
    return argv


def _check_env(env: dict[str, str]) -> dict[str, str]:
    for name in env:
        if name.startswith(_RESERVED) or name in _RESERVED_NAMES:
            raise wrong(
                f"{name} is not the job's to set",
                "names that do not start with " + ", ".join(_RESERVED),
            )
    if (
        sum(len(f"{n}={v}".encode("utf-8", "surrogatepass")) + 1 for n, v in env.items())
        > MAX_VARIABLES_BYTES
    ):
        raise wrong(f"is longer than {MAX_VARIABLES_BYTES} bytes together")
    return env


Argument = Annotated[str, Field(max_length=MAX_ARGUMENT_CHARS, pattern=NO_NUL_PATTERN)]
VariableName = Annotated[str, Field(max_length=200, pattern=VARIABLE_PATTERN)]
ExitStatus = Annotated[int, Field(ge=0, le=255)]


class ScriptLimits(Document):
    """Limits of the kernel for a script. Those but `processes` hold for each of its processes."""

    cpu_seconds: Annotated[
        int | None,
        Field(ge=1, le=86_400, description="CPU time of a process, in seconds."),
        Expected("an integer from 1 to 86400"),
    ] = None
    memory_bytes: Annotated[
        int | None,
        Field(ge=1024 * 1024, le=1 << 50, description="Address space of a process, in bytes."),
        Expected("an integer of bytes, at least 1048576"),
    ] = None
    open_files: Annotated[
        int | None,
        Field(ge=8, le=1_000_000, description="Files that a process may have open."),
        Expected("an integer from 8 to 1000000"),
    ] = None
    processes: Annotated[
        int | None,
        Field(
            ge=1,
            le=100_000,
            description="Processes of the script at once, itself included; a script with more is killed.",
        ),
        Expected("an integer from 1 to 100000"),
    ] = None
    file_bytes: Annotated[
        int | None,
        Field(ge=0, le=1 << 50, description="Size that a process may write a file to, in bytes."),
        Expected("an integer of bytes"),
    ] = None


class ScriptPayload(PayloadDocument):
    """The command that a script job executes, without a shell."""

    purpose: ClassVar[str] = "an object with argv, the executable and its arguments"

    argv: Annotated[
        list[Argument],
        Field(
            min_length=1,
            max_length=MAX_ARGUMENTS,
            description="The executable and its arguments. No shell reads them: what stands here is what the "
            "script gets. An absolute path, or a name that is sought in the worker's PATH.",
            examples=[["/opt/jobs/close-month", "--month", "2026-05"]],
        ),
        AfterValidator(_check_argv),
        without_secrets("the secret in env or stdin, which other users cannot list"),
        Expected(f"a list of 1 to {MAX_ARGUMENTS} strings without U+0000, the first an executable"),
    ]
    env: Annotated[
        dict[VariableName, Argument],
        Field(
            max_length=MAX_VARIABLES,
            description="Environment variables, beside the few that the worker passes on and NOONMARK_*.",
        ),
        AfterValidator(_check_env),
        Expected(f"an object of at most {MAX_VARIABLES} variables; names of letters, digits and _"),
    ] = Field(default_factory=dict)
    stdin: Annotated[
        Any,
        Field(description="Standard input: a string as it stands, any other value as JSON. Null: empty."),
    ] = None
    cwd: Annotated[
        str | None,
        Field(
            max_length=4096,
            pattern=r"^/[^\x00]*$",
            description="Folder to run in, absolute. Default: an empty one that is removed afterwards.",
        ),
        Expected("an absolute path"),
    ] = None
    limits: Annotated[
        ScriptLimits | None,
        Field(description="Limits of the kernel. Default: the worker's own."),
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
            description="What is kept as the run's result: the exit code, or with it the last line of "
            "standard output where that is JSON."
        ),
        Expected("exit_code or json"),
    ] = "exit_code"

    def request(self) -> Mapping[str, object]:
        """Return the payload with every default spelt out, as workers read it."""
        limits = self.limits.model_dump(exclude_none=True) if self.limits is not None else {}
        spelt: dict[str, object] = {"argv": self.argv, "env": self.env}
        if self.stdin is not None:
            spelt["stdin"] = self.stdin
        if self.cwd is not None:
            spelt["cwd"] = self.cwd
        return {
            **spelt,
            "limits": limits,
            "success_exit_codes": self.success_exit_codes,
            "result": self.result,
        }
