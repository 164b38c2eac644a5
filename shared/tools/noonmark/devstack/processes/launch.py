"""Runs a command that stops when its parent dies, as another user if requested.

Started as a script (`python -I -S launch.py …`), it prepares the process and then replaces itself
by the command, so the process id stays. It imports the standard library only, and is a program of
its own instead of a `preexec_fn` because code between fork and exec is unsafe next to the native
threads of the Kafka client.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _become(uid: int, gid: int) -> None:
    """Gives up root, and every capability with it, for `uid`."""
    os.setgroups([gid])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def main(arguments: list[str]) -> None:
    """Prepares this process and replaces it by the command; does not return."""
    parser = argparse.ArgumentParser(prog="launch")
    parser.add_argument("--parent", type=int, default=0, help="stop with this process; 0: keep running")
    parser.add_argument("--death-signal", default="SIGTERM", help="the signal that the command gets then")
    parser.add_argument("--uid", type=int)
    parser.add_argument("--gid", type=int)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    command = options.command[1:] if options.command[:1] == ["--"] else options.command

    if options.uid is not None:
        _become(options.uid, options.gid)
    if options.parent and sys.platform == "linux":
        # After the change of user: changing credentials clears the setting.
        libc = ctypes.CDLL(None, use_errno=True)
        death_signal = signal.Signals[options.death_signal]
        _check(libc.prctl(_PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0), "prctl(PR_SET_PDEATHSIG)")
        if os.getppid() != options.parent:
            # The parent died before the setting took effect, so its death will not be signalled.
            sys.exit(0)
    try:
        os.execvp(command[0], command)  # noqa: S606 - the caller's own command
    except OSError as error:
        sys.stderr.write(f"cannot run {command[0]}: {error.strerror}\n")
        sys.exit(127)


if __name__ == "__main__":
    main(sys.argv[1:])
