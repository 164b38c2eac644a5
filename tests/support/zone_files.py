"""A second reading of the zone files: TZif unpacked by hand."""

import struct
from datetime import UTC, datetime, timedelta
from importlib import resources

from noonmark.core.zones.zones import Segment, Zone

ROOT = resources.files("tzdata")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def tzif(name: str) -> bytes:
    return ROOT.joinpath("zoneinfo", *name.split("/")).read_bytes()


def unpacked(content: bytes) -> list[tuple[datetime, timedelta, timedelta]]:
    """Return the changes of offset that a TZif file lists: (instant, offset before, offset from it on)."""
    isut, isstd, leap, times, types, chars = struct.unpack(">6l", content[20:44])
    body = content[44 + times * 5 + types * 6 + chars + leap * 8 + isstd + isut :]
    isut, isstd, leap, times, types, chars = struct.unpack(">6l", body[20:44])
    instants = struct.unpack(f">{times}q", body[44 : 44 + times * 8])
    at = 44 + times * 8
    indices, at = body[at : at + times], at + times
    offsets = [struct.unpack(">lbB", body[at + 6 * i : at + 6 * i + 6])[0] for i in range(types)]
    found, before = [], offsets[0]
    for instant, index in zip(instants, indices, strict=True):
        if offsets[index] != before and instant >= -62_000_000_000:
            found.append(
                (
                    EPOCH + timedelta(seconds=instant),
                    timedelta(seconds=before),
                    timedelta(seconds=offsets[index]),
                )
            )
        before = offsets[index]
    return found


def segments(zone: Zone, start: datetime, end: datetime) -> list[Segment]:
    found = [zone.segment(start)]
    while found[-1].end < end:
        found.append(zone.segment(found[-1].end))
    return found
