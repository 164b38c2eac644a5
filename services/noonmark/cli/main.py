"""`noonmark`: the command line; this module registers all commands."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from noonmark.cli import demo
from noonmark.cli.connections import commands as connection_commands
from noonmark.cli.connections.context import CONTEXT_OPTION
from noonmark.cli.jobs import backfills
from noonmark.cli.jobs import commands as job_commands
from noonmark.cli.namespaces import api_keys, audit, limits, namespaces, signing_keys
from noonmark.cli.operations import (
    alerts,
    config,
    database,
    dev,
    health,
    lag,
    outbox,
    pools,
    rights,
    services,
    workers,
)
from noonmark.cli.runs import commands as run_commands
from noonmark.cli.runs import dead_letters, rejections, why
from noonmark.cli.schedules import calendars, zones
from noonmark.cli.schedules import commands as schedule_commands
from noonmark.cli.submissions import imports, submit
from noonmark.cli.terminal.problems import EXIT_CODES, WORDS, ExitCode, explain, explain_usage
from noonmark.cli.terminal.synonyms import unknown_command, with_our_names
from noonmark.cli.terminal.usage import check_needed, plain_usage
from noonmark.cli.verify import commands as verify_commands


class _Root(TyperGroup):
    """The root command; it reports invalid options in plain words instead of those of a library."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; names that other tools use for our options are taken."""
        ours = with_our_names(self, args)
        ctx.meta[WORDS] = ours
        plain_usage(self, ours)
        check_needed(self, ours)
        return super().parse_args(ctx, list(ours))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; the message about an unknown one names those that are meant."""
        if args and args[0] not in self.commands and (hint := unknown_command(self, args[0])):
            ctx.fail(f"No such command {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except typer.TyperException as error:
            explain_usage(error)
            raise


app = typer.Typer(
    name="noonmark",
    cls=_Root,
    help="Event-driven job scheduler on Kafka and Postgres: one recorded verdict per due instant.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for _service in (
    *(services.api, services.intake, services.trigger, services.dispatcher, services.worker),
    *(services.observer, services.watchdog),
):
    app.command(rich_help_panel="Services")(_service)
for _name, _group in (
    ("run", run_commands.app),
    ("job", job_commands.app),
    ("rejection", rejections.rejections),
    ("dead", dead_letters.app),
    ("alert", alerts.app),
):
    app.add_typer(_group, name=_name, rich_help_panel="Jobs and runs")
# The short name that other queues use.
app.add_typer(dead_letters.app, name="dlq", hidden=True)
app.command(rich_help_panel="Jobs and runs")(workers.workers)
app.command(rich_help_panel="Jobs and runs")(lag.lag)
app.command(rich_help_panel="Jobs and runs")(audit.audit)
app.command(rich_help_panel="Jobs and runs")(why.why)
app.command(rich_help_panel="Submissions and schedules")(submit.submit)
app.add_typer(imports.app, name="import", rich_help_panel="Submissions and schedules")
app.add_typer(schedule_commands.app, name="schedule", rich_help_panel="Submissions and schedules")
app.add_typer(backfills.app, name="backfill", rich_help_panel="Submissions and schedules")
app.add_typer(calendars.app, name="calendar", rich_help_panel="Submissions and schedules")
app.add_typer(database.app, name="db", rich_help_panel="Administration")
app.command(rich_help_panel="Administration")(verify_commands.verify)
app.add_typer(api_keys.app, name="admin", rich_help_panel="Administration")
app.add_typer(namespaces.app, name="namespace", rich_help_panel="Administration")
app.add_typer(limits.app, name="limit", rich_help_panel="Administration")
app.add_typer(pools.app, name="pool", rich_help_panel="Administration")
app.add_typer(rights.app, name="rights", rich_help_panel="Administration")
app.add_typer(outbox.app, name="outbox", rich_help_panel="Administration")
app.add_typer(signing_keys.app, name="signing-key", rich_help_panel="Administration")
app.add_typer(zones.app, name="zones", rich_help_panel="Administration")
app.add_typer(config.app, name="config", rich_help_panel="Administration")
app.command(rich_help_panel="Administration")(health.healthcheck)
app.add_typer(connection_commands.app, name="context", rich_help_panel="Administration")
app.add_typer(dev.app, name="dev", rich_help_panel="Development")
app.command(rich_help_panel="Development")(demo.demo)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - takes a while, for this option only

        print(version("noonmark"))
        raise typer.Exit


@app.callback()
def root(
    context: Annotated[
        str | None, typer.Option("--context", help="Context to use; see `noonmark context list`.")
    ] = None,
    _version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Print the version.")
    ] = False,
) -> None:
    """Read the options that precede the command."""
    CONTEXT_OPTION.set(context)


def main() -> None:
    """Run the command line; known errors print a message on stderr and set the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Characters that the terminal's encoding lacks are escaped; they must not abort a listing.
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except KeyboardInterrupt:
        # While the library builds the tree of commands. Ctrl-C ends a command that runs with the same code,
        # but silently: it is how to leave one that follows something.
        print("noonmark: stopped by SIGINT", file=sys.stderr)
        sys.exit(ExitCode.INTERRUPTED)
    except Exception as error:
        problem = explain(error)
        if problem is None:
            raise
        print(problem, file=sys.stderr)
        sys.exit(problem.code)


if __name__ == "__main__":
    main()
