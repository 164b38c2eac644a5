import pytest

from noonmark.devstack.kafka.java import parse_java_version


@pytest.mark.parametrize(
    ("shown", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "25.0.2" 2026-01-20 LTS', 25),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("command not found", None),
    ],
)
def test_the_major_version_is_read_from_what_java_prints(shown: str, version: int | None) -> None:
    assert parse_java_version(shown) == version
