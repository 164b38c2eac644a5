"""The wall clocks of a chaos run: one for each process of a service, and one for the servers of Postgres."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Self

from tests.support.clocks.turned import NoCompilerError, TurnedClock, compile_library
from tests.support.node import Node

COARSE: Final = timedelta(milliseconds=20)
"""By which handlers may date a call too early."""


@dataclass(slots=True)
class Clocks:
    """Clocks that can be turned while their processes run; `why` there are none, if there are none.

    Attributes:
        postgres: of both servers, which agree: noonmark's time is theirs, and must not go back.
        steps: when Postgres's clock was set, by the machine's clock, and by how much it is ahead since then.
    """

    folder: Path
    library: Path | None = None
    why: str = ""
    postgres: TurnedClock | None = None
    steps: list[tuple[datetime, timedelta]] = field(default_factory=list)
    _made: int = 0
    _of: dict[Node, TurnedClock] = field(default_factory=dict)

    @classmethod
    def prepare(cls, folder: Path) -> Self:
        """Compile what turns clocks, into a folder that Postgres can read whoever it runs as."""
        folder.mkdir()
        folder.chmod(0o711)
        try:
            library = compile_library(folder)
        except NoCompilerError as error:
            return cls(folder, why=str(error))
        return cls(folder, library, postgres=TurnedClock(library, folder / "postgres"))

    def new(self) -> TurnedClock | None:
        """A clock for a process that is about to start; None if no clock can be turned."""
        if self.library is None:
            return None
        self._made += 1
        return TurnedClock(self.library, self.folder / f"clock-{self._made}")

    def give(self, node: Node, clock: TurnedClock | None) -> None:
        """Note whose clock it is."""
        if clock is not None:
            self._of[node] = clock

    def turn(self, node: Node, seconds: float) -> None:
        """Set the clock of one process off by so much from now on; 0: it is right again."""
        self._of[node].turn(seconds)

    def set_ahead(self, seconds: float) -> None:
        """Let the clock of Postgres jump ahead by so much."""
        assert self.postgres is not None, self.why
        ahead = self.postgres.seconds + seconds
        self.steps.append((datetime.now(UTC) - COARSE, timedelta(seconds=ahead)))
        self.postgres.turn(ahead)

    def by_postgres(self, at: datetime) -> datetime:
        """What Postgres's clock showed at an instant of the machine's clock."""
        return at + next((ahead for since, ahead in reversed(self.steps) if since <= at), timedelta(0))
