"""The program `noonmark`: it handles signals first, then loads and runs the command line."""

from __future__ import annotations

from noonmark.cli.terminal.signals import ended_by_signals, exit_on_sigterm


def main() -> None:
    """Run the program."""
    with ended_by_signals():
        from noonmark.cli.main import main as run  # noqa: PLC0415 - takes a while
    exit_on_sigterm()
    run()


if __name__ == "__main__":
    main()
