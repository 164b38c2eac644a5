"""Every change that a zone file lists is a change of the zone."""

from datetime import UTC, datetime, timedelta

from tests.support.time_oracle import counts
from tests.support.zone_files import EPOCH, segments, tzif, unpacked

from noonmark.core.zones.zones import Zone, ZoneData


def changes(zone: Zone, start: datetime, end: datetime) -> list[tuple[datetime, timedelta, timedelta]]:
    return [
        (each.start, each.before, each.offset)
        for each in segments(zone, start, end)
        if each.before != each.offset and start <= each.start < end
    ]


def test_every_change_of_every_zone_from_1970_to_2037_is_found_to_the_second():
    data = ZoneData.packaged()  # of this test alone: 68 years of every zone are not to be kept
    start, end = EPOCH, datetime(2038, 1, 1, tzinfo=UTC)
    seen: set[bytes] = set()
    compared = 0
    for name in sorted(data.names):
        content = tzif(name)
        if content in seen:
            continue
        seen.add(content)
        expected = [each for each in unpacked(content) if start <= each[0] < end]
        got = changes(data.zone(name), start, end)
        # A file lists changes up to the last one that its closing rule does not tell.
        known_until = max((at for at, _, _ in unpacked(content)), default=start)
        assert [each for each in got if each[0] <= known_until] == expected, name
        compared += len(expected)
    assert len(data.names) > 590
    assert compared > 11_000
    counts.add("changes that zone files list", files=len(seen), changes=compared)
