"""Zones against a second reading of the same files: TZif unpacked by hand, and zoneinfo asked hour by hour."""

# ruff: noqa: DTZ001 - local times are naive

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests.support.zone_files import EPOCH, ROOT, segments, tzif, unpacked

from noonmark.core.zones import zones
from noonmark.core.zones.zones import MAX_AT, MIN_AT, REACH, UTC_ZONE, ZoneData, ZoneError, load_zone

DATA = ZoneData.packaged()
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


@pytest.fixture(autouse=True)
def _packaged_data_again():
    yield
    zones.use_zone_data(None)


def test_no_segment_is_as_short_as_the_changes_at_its_ends_or_as_the_step_of_the_search():
    for name in DATA.names:
        found = unpacked(tzif(name))
        for (at, _, _), (then, _, _) in pairwise(found):
            assert then - at > zones._STEP, (name, at)
        assert all(abs(offset - before) < REACH / 2 for _, before, offset in found), name


def info(name: str) -> ZoneInfo:
    with ROOT.joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


@pytest.mark.parametrize(
    "name",
    [
        *("Africa/Cairo", "Africa/Casablanca", "America/Asuncion", "America/Havana", "America/New_York"),
        *("America/Nuuk", "America/Santiago", "America/St_Johns", "America/Vancouver", "Antarctica/Troll"),
        *("Asia/Beirut", "Asia/Gaza", "Asia/Jerusalem", "Asia/Tokyo", "Australia/Lord_Howe"),
        *("Australia/Sydney", "Europe/Chisinau", "Europe/Dublin", "Pacific/Chatham", "Pacific/Easter"),
    ],
)
def test_beyond_the_listed_changes_zones_say_what_zoneinfo_says(name):
    zone, second = DATA.zone(name), info(name)

    def expected(at: datetime) -> timedelta | None:
        return at.astimezone(second).utcoffset()

    for year in (2038, 2050, 2073, 2087, 2100):
        start, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
        for each in segments(zone, start, end):
            assert zone.segment(each.end - SECOND) == each
            assert expected(each.start - SECOND) == each.before
            assert expected(each.end) == each.after
            if each.before != each.offset:
                for hours in range(-30, 31):
                    at = each.start + hours * HOUR
                    assert zone.offset(at) == expected(at), at
        for half_day in range(730):
            at = start + half_day * 12 * HOUR
            assert zone.offset(at) == expected(at), at


@pytest.mark.parametrize("year", [1, 2, 1800, 1899, 1969, 1994, 2026, 9998, 9999])
def test_segments_join_without_a_hole_and_are_cut_only_where_nothing_changes(year):
    for name in ("Pacific/Kiritimati", "Africa/Sao_Tome", "Europe/Amsterdam", "America/Lima", "Etc/GMT+12"):
        zone = DATA.zone(name)
        start, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year, 12, 31, tzinfo=UTC)
        for one, other in pairwise(segments(zone, start, end)):
            assert one.end == other.start
            assert (one.offset, one.after) == (other.before, other.offset)
            if one.after == one.offset:
                assert zone.offset(one.end - REACH) == zone.offset(one.end + REACH - SECOND) == one.offset


def test_a_change_at_new_year_is_a_change_from_both_sides():
    zone = DATA.zone("Pacific/Kiritimati")
    change = datetime(1994, 12, 31, 10, tzinfo=UTC)
    assert zone.segment(datetime(1995, 1, 1, tzinfo=UTC)).start == change
    assert zone.segment(change - SECOND).after - zone.segment(change - SECOND).offset == timedelta(hours=24)


def test_mean_time_before_zones_were_made_keeps_its_seconds():
    assert DATA.zone("Europe/Amsterdam").offset(datetime(1820, 1, 1, tzinfo=UTC)) == timedelta(
        seconds=unpacked(tzif("Europe/Amsterdam"))[0][1].total_seconds()
    )
    assert DATA.zone("America/New_York").offset(datetime(1880, 1, 1, tzinfo=UTC)) == -timedelta(
        hours=4, minutes=56, seconds=2
    )


@pytest.mark.parametrize(
    "name", ["UTC", "Etc/GMT+12", "Etc/GMT-14", "America/New_York", "Pacific/Kiritimati", "Asia/Manila"]
)
def test_the_ends_of_the_calendar_raise_nothing(name):
    zone = DATA.zone(name)
    for at in (MIN_AT, MIN_AT + SECOND, MIN_AT + REACH, MAX_AT - REACH, MAX_AT - SECOND, MAX_AT):
        segment = zone.segment(at)
        assert segment.start <= at
        assert at < segment.end or segment.end == MAX_AT
        assert abs(zone.local(at).replace(tzinfo=UTC) - at) <= abs(zone.offset(at))
        assert len(zone.images(at.replace(tzinfo=None))) <= 1
    assert zone.segment(MIN_AT).start == MIN_AT
    assert zone.segment(MAX_AT).end == MAX_AT


def test_a_local_time_has_no_image_in_a_gap_and_two_in_an_overlap():
    zone = DATA.zone("America/New_York")
    assert zone.images(datetime(2026, 3, 8, 2, 30)) == ()
    assert zone.images(datetime(2026, 3, 8, 3)) == (datetime(2026, 3, 8, 7, tzinfo=UTC),)
    assert zone.images(datetime(2026, 11, 1, 1, 30)) == (
        datetime(2026, 11, 1, 5, 30, tzinfo=UTC),
        datetime(2026, 11, 1, 6, 30, tzinfo=UTC),
    )
    assert DATA.zone("Pacific/Apia").images(datetime(2011, 12, 30, 12)) == ()
    assert len(DATA.zone("Pacific/Kwajalein").images(datetime(1969, 9, 30, 12))) == 2


def test_an_instant_in_another_offset_is_the_same_instant_and_a_naive_one_is_refused():
    zone = DATA.zone("Europe/Berlin")
    at = datetime(2026, 1, 1, 0, 30, tzinfo=info("Asia/Tokyo"))
    assert zone.local(at) == datetime(2025, 12, 31, 16, 30)
    with pytest.raises(ValueError, match="no offset"):
        zone.segment(datetime(2026, 1, 1))


@pytest.mark.parametrize(
    "name", ["UTC", "Etc/UTC", "Etc/UCT", "Etc/Zulu", "Etc/Universal", "UCT", "Zulu", "Universal"]
)
def test_names_of_utc_are_known_as_such(name):
    assert name in DATA.names
    zone = DATA.zone(name)
    assert zone.is_utc
    assert zone.name == name
    assert zone.segment(EPOCH) == UTC_ZONE.segment(EPOCH)
    assert unpacked(tzif(name)) == []


def test_other_zones_are_not_utc_and_utc_is_one_object():
    assert not DATA.zone("GMT").is_utc
    assert not DATA.zone("Europe/London").is_utc
    assert load_zone("UTC") is UTC_ZONE
    assert load_zone("Europe/London") is load_zone("Europe/London")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("europe/berlin", ("Europe/Berlin",)),
        ("utc", ("UTC",)),
        ("Berlin", ("Europe/Berlin",)),
        ("new york", ("America/New_York",)),
        ("Amercia/New_York", ("America/New_York",)),
    ],
)
def test_a_name_that_is_nearly_right_is_refused_with_the_right_one(name, near):
    with pytest.raises(ZoneError, match=f"did you mean '{near[0]}'") as refused:
        load_zone(name)
    assert refused.value.near[:1] == near


@pytest.mark.parametrize(
    "name",
    [
        *("", "../etc", "../../etc/passwd", "/etc/localtime", "Europe/../Europe/Berlin", "Europe", "Europe/"),
        *("./UTC", "__init__.py", "tzdata.zi", "Europe/Berlin\0", "Europe\\Berlin", "+02:00", "PST"),
        *("x" * 100_000, "\ud800"),
    ],
)
def test_what_is_no_zone_is_refused_in_one_short_sentence(name):
    with pytest.raises(ZoneError, match=r"time zone .* is not in zone data 20") as refused:
        load_zone(name)
    assert len(str(refused.value)) < 250


def directory(
    path: Path, files: dict[str, bytes], version: str = "# version 2025z\n", file: str = "tzdata.zi"
) -> Path:
    for name, content in files.items():
        path.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        path.joinpath(name).write_bytes(content)
    path.joinpath(file).write_text(version)
    return path


def test_two_versions_are_held_at_once(tmp_path):
    # What zone data said of Vancouver before British Columbia gave up changing its clocks.
    older = ZoneData.from_directory(directory(tmp_path, {"America/Vancouver": tzif("America/Los_Angeles")}))
    at = datetime(2026, 11, 2, 15, tzinfo=UTC)
    assert older.version == "2025z"
    assert older.zone("America/Vancouver").local(at).hour == 7
    assert DATA.zone("America/Vancouver").local(at).hour == 8
    assert older.zone("America/Vancouver") != DATA.zone("America/Vancouver")
    assert older.zone("America/Vancouver").version == "2025z"


def test_the_process_uses_the_directory_that_it_is_told_until_told_otherwise(tmp_path):
    packaged = zones.zone_data_version()
    assert packaged == DATA.version
    zones.use_zone_data(directory(tmp_path, {"Here/There": tzif("Asia/Tokyo")}, "2026b\n", "version"))
    assert zones.zone_data_version() == "2026b"
    assert load_zone("Here/There").offset(EPOCH) == 9 * HOUR
    with pytest.raises(ZoneError, match="not in zone data 2026b"):
        load_zone("Europe/Berlin")
    zones.use_zone_data(None)
    assert zones.zone_data_version() == packaged
    assert load_zone("Europe/Berlin").name == "Europe/Berlin"


def test_the_hosts_own_choice_and_leap_second_copies_are_no_zones(tmp_path):
    content = tzif("Asia/Tokyo")
    names = ("localtime", "posixrules", "right/Asia/Tokyo", "posix/Asia/Tokyo", "Asia/Tokyo")
    data = ZoneData.from_directory(directory(tmp_path, dict.fromkeys(names, content)))
    assert data.names == {"Asia/Tokyo"}


@pytest.mark.parametrize("version", ["", "unknown", "# version unknown\n", "# version \n", "x" * 1000])
def test_a_directory_without_a_version_is_refused_and_nothing_changes(tmp_path, version):
    directory(tmp_path, {}, version)
    with pytest.raises(ZoneError, match=r"have no version.*'# version 2026b'"):
        zones.use_zone_data(tmp_path)
    with pytest.raises(ZoneError, match="have no version"):
        zones.use_zone_data(tmp_path / "absent")
    assert zones.zone_data_version() == DATA.version


def test_a_broken_file_is_named(tmp_path):
    content = tzif("Asia/Tokyo")
    cut = {f"Bad/File{size}": content[:size] for size in range(4, len(content) - 8, 5)}
    data = ZoneData.from_directory(directory(tmp_path, cut | {"Bad/Text": b"no"}))
    for name in cut:
        with pytest.raises(ZoneError, match=f"zone '{name}' of zone data 2025z cannot be read"):
            data.zone(name)
    with pytest.raises(ZoneError, match="not in zone data"):
        data.zone("Bad/Text")
