"""Commands of crontabs as arguments: cron passes a line to a shell, a script job starts one program.

A command of plain words, quoted or not, needs no shell, nor do variables set before it and a `cd` to a fixed
folder. Everything else that a shell would interpret is reported, so that a person can decide.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import Final

_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_FOLDER: Final = re.compile(r"cd[ \t]+(/[A-Za-z0-9_./@%+:,-]*)[ \t]*&&[ \t]*(.+)", re.DOTALL)
_OPTION: Final = re.compile(r"-[nE]*e")
_OPERATORS: Final = {
    "|": "a pipe",
    "&": "&, which runs in the background or ties commands together",
    ";": "a list of commands",
    "<": "a redirect",
    ">": "a redirect",
    "(": "a subshell",
    ")": "a subshell",
    "\n": "several lines",
}
_EXPANSIONS: Final = {
    "$": "a variable or substitution",
    "`": "a command substitution",
    "*": "a pattern of file names",
    "?": "a pattern of file names",
    "[": "a pattern of file names",
    "{": "a list in braces",
    "}": "a list in braces",
}
_BUILTINS: Final = frozenset({
    "!", ".", ":", "alias", "bg", "break", "builtin", "case", "cd", "chdir", "command", "continue", "coproc",
    "declare", "do", "done", "elif", "else", "esac", "eval", "exec", "exit", "export", "fc", "fg", "fi",
    "for", "function", "getopts", "hash", "if", "jobs", "let", "local", "popd", "pushd", "read", "readonly",
    "return",
    "select", "set", "shift", "shopt", "source", "then", "time", "times", "trap", "type", "typeset", "ulimit",
    "umask", "unalias", "unset", "until", "wait", "while",
})  # fmt: skip
"""First words that are shell builtins, quoted or not, without those that also exist as programs."""

_SHELLS: Final = frozenset({"sh", "ash", "bash", "dash", "ksh", "ksh93", "mksh", "zsh"})
"""Shells that read plain words as POSIX says. Another `SHELL` may be a wrapper that does anything."""


class ShellNeededError(ValueError):
    """Only a shell can run the command.

    Attributes:
        what: the syntax that needs a shell.
    """

    def __init__(self, what: str) -> None:
        super().__init__(f"the command needs a shell: it has {what}")
        self.what = what


@dataclass(frozen=True, slots=True)
class Program:
    """A program that is started without a shell.

    Attributes:
        argv: the executable and its arguments.
        environment: variables set before it.
        folder: its working folder; None: not set.
    """

    argv: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    folder: str | None = None


def program_of(command: str, shell: str = "/bin/sh") -> Program:
    """Return what a command starts.

    Args:
        command: the line as cron passes it on.
        shell: the shell that cron passes it to.

    Raises:
        ShellNeededError: only a shell can run it.
    """
    if posixpath.basename(shell) not in _SHELLS:
        raise ShellNeededError(f"SHELL={shell[:100]} above it, which may do anything with the line")
    folder = None
    if (found := _FOLDER.fullmatch(command)) is not None:
        folder, command = found[1], found[2]
    words = _Words(command).read()
    variables: list[tuple[str, str]] = []
    while words and not words[0].quoted_start and (set_ := _ASSIGNMENT.fullmatch(words[0].text)) is not None:
        variables.append((set_[1], set_[2]))
        words.pop(0)
    if not words:
        raise ShellNeededError("variables and no command" if variables else "no command")
    if words[0].text in _BUILTINS:
        raise ShellNeededError(f"{words[0].text!r}, which a shell does itself")
    if words[0].text == "echo" and any("\\" in word.text or _OPTION.match(word.text) for word in words[1:]):
        raise ShellNeededError("an echo with a backslash or -e, which shells and programs read differently")
    return Program(tuple(word.text for word in words), tuple(variables), folder)


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    quoted_start: bool


class _Words:
    """Reads words as a POSIX shell does, and stops at other syntax."""

    def __init__(self, command: str) -> None:
        self._text = command
        self._at = 0

    def read(self) -> list[_Word]:
        """Return the words.

        Raises:
            ShellNeededError: the command has other syntax than words.
        """
        words: list[_Word] = []
        while self._skip_blanks():
            words.append(self._word())
        return words

    def _skip_blanks(self) -> bool:
        while self._at < len(self._text) and self._text[self._at] in " \t":
            self._at += 1
        return self._at < len(self._text)

    def _word(self) -> _Word:
        start = self._text[self._at]
        if start == "#":
            raise ShellNeededError("a comment")
        if start == "~":
            raise ShellNeededError("~, a home folder")
        quoted_start = start in "'\"\\"
        parts: list[str] = []
        while self._at < len(self._text):
            char = self._text[self._at]
            if char in " \t":
                break
            parts.append(self._piece(char, parts[-1] if parts else ""))
        return _Word("".join(parts), quoted_start)

    def _piece(self, char: str, before: str) -> str:
        """Read one character or one quoted part of a word."""
        if char in _OPERATORS:
            raise ShellNeededError(_OPERATORS[char])
        if self._text.startswith("{}", self._at):
            self._at += 2
            return "{}"
        if char in _EXPANSIONS:
            raise ShellNeededError(_EXPANSIONS[char])
        if char == "~" and before[-1:] in {"=", ":"}:
            raise ShellNeededError("~, a home folder")
        if char == "'":
            return self._until_single()
        if char == '"':
            return self._until_double()
        if char == "\\":
            self._at += 2
            if self._at > len(self._text):
                raise ShellNeededError("a backslash at its end")
            return self._text[self._at - 1]
        self._at += 1
        return char

    def _until_single(self) -> str:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise ShellNeededError("a quote that is not closed")
        found = self._text[self._at + 1 : end]
        self._at = end + 1
        return found

    def _until_double(self) -> str:
        parts: list[str] = []
        self._at += 1
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == '"':
                self._at += 1
                return "".join(parts)
            if char in "$`":
                raise ShellNeededError(_EXPANSIONS[char])
            if char == "\\" and self._text[self._at + 1 : self._at + 2] in {"$", "`", '"', "\\"}:
                self._at += 1
            parts.append(self._text[self._at])
            self._at += 1
        raise ShellNeededError("a quote that is not closed")
