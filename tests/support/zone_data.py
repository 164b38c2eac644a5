"""A release of the time zone data as it was before: the packaged one with some zones' files exchanged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from noonmark.core.zones import zones

OLD_VERSION = "2026a"
VANCOUVER, LOS_ANGELES = "America/Vancouver", "America/Los_Angeles"
UNCHANGED = ("America/New_York", "Asia/Tokyo")


def old_zone_data(
    folder: Path, *, version: str = OLD_VERSION, replaced: Mapping[str, str] | None = None
) -> Path:
    """Write a directory of zone data.

    Args:
        folder: where it is made.
        version: that it says to be.
        replaced: zones that have the file of another one; by default Vancouver still changes its clocks.
    """
    folder.mkdir(parents=True)
    wanted = {name: name for name in (*UNCHANGED, LOS_ANGELES)}
    wanted |= {VANCOUVER: LOS_ANGELES} if replaced is None else replaced
    for name, source in wanted.items():
        file = folder.joinpath(*name.split("/"))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(resources.files("tzdata").joinpath("zoneinfo", *source.split("/")).read_bytes())
    folder.joinpath("version").write_text(f"{version}\n")
    return folder


@contextmanager
def planning_with(directory: Path | None) -> Iterator[str]:
    """Let this process use the zone data of a directory (None: the packaged ones) in the block."""
    zones.use_zone_data(directory)
    try:
        yield zones.zone_data_version()
    finally:
        zones.use_zone_data(None)
