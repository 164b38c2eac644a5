"""What users may write as the address of Postgres: every form that libpq reads, and nothing else."""

import re
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from noonmark.settings import Settings, SettingsError
from noonmark.settings.postgres_url import check_database_url, database_address

ROOT = Path(__file__).parents[3]
PRINTABLE = "".join(map(chr, range(33, 127)))
ENCODED = "".join(f"%{ord(each):02X}" for each in PRINTABLE)

FORMS = [
    (
        "postgresql://app:s3cret@db:5433/jobs",
        {"host": "db", "port": "5433", "dbname": "jobs"},
        "jobs at db:5433",
    ),
    ("postgres://app@db/jobs", {"host": "db", "user": "app"}, "jobs at db"),
    ("postgresql://", {}, "of the user at (local socket)"),
    ("postgresql:///jobs", {"dbname": "jobs"}, "jobs at (local socket)"),
    ("postgresql://db", {"host": "db"}, "of the user at db"),
    ("postgresql://a:5432,b:5433/jobs", {"host": "a,b", "port": "5432,5433"}, "jobs at a:5432,b:5433"),
    ("postgresql://a,b:5433/jobs", {"host": "a,b", "port": ",5433"}, "jobs at a,b:5433"),
    ("postgresql:///jobs?host=a,b&port=5433", {"host": "a,b", "port": "5433"}, "jobs at a:5433,b:5433"),
    (
        "postgresql://a,b/jobs?target_session_attrs=read-write&sslmode=verify-full&sslrootcert=/ca.pem",
        {"target_session_attrs": "read-write", "sslmode": "verify-full", "sslrootcert": "/ca.pem"},
        "jobs at a,b",
    ),
    ("postgresql://u@db/jobs?options=-c%20search_path%3Dnm", {"options": "-c search_path=nm"}, "jobs at db"),
    ("postgresql:///jobs?host=/run/postgresql", {"host": "/run/postgresql"}, "jobs at (local socket)"),
    ("postgresql://%2Frun%2Fpostgresql/jobs", {"host": "/run/postgresql"}, "jobs at (local socket)"),
    ("postgresql://u@/jobs?host=/run/a&port=5433", {"host": "/run/a", "user": "u"}, "jobs at (local socket)"),
    ("postgresql://u:p@[::1]:5433/jobs", {"host": "::1", "port": "5433"}, "jobs at [::1]:5433"),
    ("postgresql://[fd00::1],[fd00::2]/jobs", {"host": "fd00::1,fd00::2"}, "jobs at [fd00::1],[fd00::2]"),
    ("postgresql:///jobs?hostaddr=10.0.0.1", {"hostaddr": "10.0.0.1"}, "jobs at 10.0.0.1"),
    (f"postgresql://u:{ENCODED}@db/jobs", {"password": PRINTABLE}, "jobs at db"),
    ("postgresql://u:p%C3%A4ss%25w%40rd@db/a%20b", {"password": "päss%w@rd", "dbname": "a b"}, "a b at db"),
    ("postgresql://us%40er:p@db/jobs", {"user": "us@er"}, "jobs at db"),
    ("postgresql:///?service=noonmark", {"service": "noonmark"}, "of the user at service noonmark"),
    ("host=db port=5433 dbname=jobs password=s3cret", {"password": "s3cret"}, "jobs at db:5433"),
    ("host='db' password='p@ \\'\\\\/%' dbname = jobs", {"password": "p@ '\\/%"}, "jobs at db"),
    ("service=noonmark", {"service": "noonmark"}, "of the user at service noonmark"),
    (make_conninfo(host="db", password=PRINTABLE), {"password": PRINTABLE}, "of the user at db"),
]


@pytest.mark.parametrize(("url", "parts", "shown"), FORMS)
def test_every_form_of_libpq_is_accepted_and_shown_without_its_password(url, parts, shown, monkeypatch):
    check_database_url(url)
    monkeypatch.setenv("NOONMARK_DATABASE_URL", url)

    assert Settings.load().dsn == url
    assert conninfo_to_dict(url).items() >= parts.items()
    assert database_address(url) == shown


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("", "is not a Postgres URL"),
        ("jobs", "is not a Postgres URL"),
        ("db/jobs", "is not a Postgres URL"),
        ("mysql://s3cret@db/jobs?a=b", "is not a Postgres URL"),
        ("postgresql+psycopg://u:s3cret@db/jobs", "is not a Postgres URL"),
        ("postgresql://u:s3cret%zz@db/jobs", "%25 for %"),
        ("postgresql://u:s3cret@[::1/jobs", "cannot be read as a Postgres URL"),
        ("postgresql://u:s3cret@db/jobs?sslmod=require", "cannot be read as a Postgres URL"),
        ("postgresql://u:s3@cret@db/jobs", "%40 for @"),
        ("postgresql://u:s3cret@a:1,b:x/jobs", "has a port that is not a number from 1 to 65535"),
        ("postgresql://u:s3cret@a:70000/jobs", "has a port that is not a number from 1 to 65535"),
        ("host=db passwort=s3cret", "cannot be read as a Postgres URL"),
        ("host=db password='s3cret", "cannot be read as a Postgres URL"),
    ],
)
def test_what_libpq_would_misread_is_refused_without_showing_a_password(url, told, monkeypatch):
    monkeypatch.setenv("NOONMARK_DATABASE_URL", url)
    with pytest.raises(SettingsError) as refused:
        Settings.load()

    assert f"NOONMARK_DATABASE_URL {told}" in str(refused.value) or told in str(refused.value)
    assert "cret" not in str(refused.value)
    assert "cret" not in database_address(url)


def test_engines_get_their_connections_from_libpq():
    """SQLAlchemy reads URLs differently: several hosts with ports do not survive it."""
    found = {
        str(path.relative_to(ROOT)): re.findall(
            r"create_engine\(\s*([^,\s)]+)|(make_url|sqlalchemy\.url)", text
        )
        for root in ("services", "shared")
        for path in (ROOT / root).rglob("*.py")
        if "sqlalchemy" in (text := path.read_text(encoding="utf-8"))
    }
    assert {path: uses for path, uses in found.items() if uses} == {
        "shared/internal/noonmark/store/database/engines.py": [('"postgresql+psycopg://"', "")]
    }
