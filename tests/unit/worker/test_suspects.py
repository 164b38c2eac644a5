"""How many suspects a worker runs at once: by its slots and its memory, within bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from noonmark.worker.processes.suspects import memory_bytes, suspects_that_fit

GIB = 1 << 30


@pytest.mark.parametrize(
    ("slots", "memory", "fit"),
    [
        (256, 64 * GIB, 64),
        (24, 64 * GIB, 24),
        (256, 4 * GIB, 32),
        (256, GIB, 8),
        (256, GIB // 8, 8),
        (1, 64 * GIB, 8),
    ],
)
def test_suspects_fit_by_slots_and_by_half_of_the_memory(slots: int, memory: int, fit: int) -> None:
    assert suspects_that_fit(slots, memory) == fit


def test_the_limit_of_the_container_counts_if_it_is_less_than_the_machine_has(tmp_path: Path) -> None:
    none, small, huge = (tmp_path / name for name in ("none", "small", "huge"))
    none.write_text("max\n")
    small.write_text("1048576\n")
    huge.write_text(f"{1 << 62}\n")
    machine = memory_bytes([none, huge, tmp_path / "absent"])
    assert 1048576 < machine < 1 << 62
    assert memory_bytes([none, small, huge]) == 1048576
