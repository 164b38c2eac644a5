"""`noonmark import crontab`: each line becomes a job, or it is said why not."""

import json
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.cli import call

from noonmark.cli.submissions.apply_files import read_sources
from noonmark.cli.submissions.crontab_jobs import Rules, convert
from noonmark.core.crontab.reader import parse_crontab

SAMPLE = Path(__file__).parents[3] / "examples" / "crontab"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def made(text, *, system=False, **rules):
    found = list(convert(parse_crontab(text, system=system), Rules("UTC", **rules), now=NOW, count=20))
    assert [line.reason for line in found] == [None] * len(found)
    return [line.document for line in found]


def reasons(text, *, system=False, **rules):
    found = convert(parse_crontab(text, system=system), Rules("UTC", **rules), now=NOW, count=20)
    return [line.reason for line in found]


def test_a_job_does_what_cron_did_and_no_more():
    (document,) = made("CRON_TZ=Europe/Berlin\nLANG=C\n30 2 * * * /opt/close --day 'a b'")
    assert document == {
        "name": "cron-close",
        "type": "script",
        "schedule": {"cron": "30 2 * * *", "timezone": "Europe/Berlin"},
        "payload": {"argv": ["/opt/close", "--day", "a b"], "env": {"LANG": "C"}},
        "timeout_seconds": 86400,
        "max_retries": 0,
        "misfire": "skip",
        "overlap": "allow",
        "delivery": "at_most_once",
    }


def test_a_line_that_cron_starts_only_once_at_a_time_skips_overlapping_runs():
    (document,) = made("30 2 * * * -n -s /opt/close -n")
    assert (document["overlap"], document["payload"]["argv"]) == ("skip", ["/opt/close", "-n"])


def test_folder_input_variables_and_delay_are_kept():
    (document,) = made(
        "RANDOM_DELAY=5\n0 1 * * * cd /srv && A=1 ./run --x%line one%line two",
        prefix="",
        pool="ops",
        namespace="shop",
    )
    assert document["payload"] == {
        "argv": ["/srv/run", "--x"],
        "env": {"A": "1"},
        "stdin": "line one\nline two\n",
        "cwd": "/srv",
    }
    assert document["schedule"]["jitter_seconds"] == 300
    assert (document["name"], document["pool"], document["namespace"]) == ("run", "ops", "shop")


def test_home_is_where_commands_start():
    (document,) = made("HOME=/home/joe\n0 1 * * * bin/backup")
    assert (document["payload"]["argv"], document["payload"]["cwd"]) == (
        ["/home/joe/bin/backup"],
        "/home/joe",
    )
    assert "relative to the user's home" in reasons("0 1 * * * bin/backup")[0]


def test_shell_syntax_goes_to_the_shell_only_if_that_is_allowed():
    assert (
        "a pipe; pass --allow-shell to run it in /bin/bash" in reasons("SHELL=/bin/bash\n0 1 * * * a | b")[0]
    )
    (document,) = made("SHELL=/bin/bash\n0 1 * * * a | b", allow_shell=True)
    assert document["payload"]["argv"] == ["/bin/bash", "-c", "a | b"]
    assert made("0 1 * * * a > b", allow_shell=True)[0]["payload"]["argv"] == ["/bin/sh", "-c", "a > b"]


def test_users_are_not_switched():
    text = "0 1 * * * root /a\n0 1 * * * joe /b"
    assert [
        "--user root" in (reason or "") for reason in reasons(text, system=True, users=frozenset({"joe"}))
    ] == [True, False]
    assert made(text, system=True, users=frozenset({"joe", "root"}))[0]["labels"] == {
        "noonmark.dev/crontab-user": "root"
    }


def test_what_a_job_cannot_have_is_a_reason():
    (reason,) = reasons("LD_PRELOAD=/x.so\n0 1 * * * /a")
    assert reason.startswith("/payload/env")
    assert "LD_PRELOAD" in reason
    assert "Mars/Base" in reasons("CRON_TZ=Mars/Base\n0 1 * * * /a")[0]
    assert "jitter" in reasons("RANDOM_DELAY=90\n0 * * * * /a")[0]
    assert "/payload/argv" in reasons("0 1 * * * /a " + "b" * 20_000)[0]


def test_names_are_the_same_whenever_the_same_lines_are_read():
    text = (
        "0 1 * * * /a/report\n0 2 * * * /b/report\n0 3 * * * /c/other\n0 3 * * * /c/twin\n0 3 * * * /c/twin\n"
        "0 3 * * * /c/twin"
    )
    names = [document["name"] for document in made(text)]
    assert names == [document["name"] for document in made(text)]
    assert len(set(names)) == 6
    assert (names[0], names[2], names[3]) == ("cron-report", "cron-other", "cron-twin")
    assert names[1].startswith("cron-report-")
    assert names[5] == names[4] + "-2"


def test_a_second_line_of_a_program_gets_a_name_of_its_own_and_leaves_the_first_its():
    first = "0 1 * * * /a/report --day"
    (alone,) = made(first)
    both = made(f"{first}\n0 2 * * 0 /a/report --week")
    assert both[0] == alone
    assert both[1]["name"] != alone["name"]
    # Another line between them moves neither.
    three = made(f"{first}\n0 3 1 * * /a/report --month\n0 2 * * 0 /a/report --week")
    assert [three[0], three[2]] == both


def test_the_sample_of_forty_lines_is_told_line_by_line():
    called = call("import", "crontab", str(SAMPLE), "--json", "--zone", "UTC", "--from", "2026-01-01", code=1)
    report = json.loads(called.stdout)
    assert len(report["items"]) == 40
    assert (report["imported"], report["not_imported"], report["form"]) == (28, 12, "user")
    jobs = [item for item in report["items"] if item["job"] is not None]
    assert {item["checked"] for item in jobs} == {100}
    assert len({item["job"] for item in jobs}) == len(jobs)
    assert all(item["reason"] for item in report["items"] if item["job"] is None)


def test_with_a_shell_more_of_the_sample_becomes_jobs():
    crontab = parse_crontab(SAMPLE.read_text(), system=False)
    found = list(convert(crontab, Rules("UTC", allow_shell=True), now=NOW, count=1))
    assert sum(line.document is not None for line in found) == 33


def test_what_is_written_is_what_an_apply_reads(tmp_path):
    target = tmp_path / "jobs.yaml"
    text = "A=yes\nB=1e3\n0 1 * * * /a 'on' 012 \"x: y\" '# z'%1\n\n0 2 * * * /b '{}' null %two%lines\n"
    arguments = ("import", "crontab", "-", "--zone", "UTC", "--from", "2026-01-01")
    call(*arguments, "-o", str(target), stdin=text)
    sources, problems = read_sources([str(target)])
    report = json.loads(call(*arguments, "--json", stdin=text).stdout)
    assert problems == []
    assert [one.document for one in sources] == [item["document"] for item in report["items"]]
    assert sources[0].document["payload"]["env"] == {"A": "yes", "B": "1e3"}
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_dry_run_writes_nothing(tmp_path):
    target = tmp_path / "jobs.yaml"
    call("import", "crontab", "-", "-o", str(target), "--dry-run", stdin="0 1 * * * /a\n")
    assert not target.exists()


def test_every_line_imported_is_code_0_and_is_told():
    called = call("import", "crontab", "-", "--zone", "Asia/Tokyo", stdin="MAILTO=x\r\n0 1 * * * /a\r\n")
    assert "1 of 1 line converted" in called.stdout
    assert "zone Asia/Tokyo" in called.stdout
    assert "line 1: MAILTO" in called.stdout
    assert "only programs in NOONMARK_SCRIPTS" in called.stdout


@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "told"),
    [
        (("-", "--user-form", "--system-form"), "", 2, "not both"),
        (("/nowhere",), "", 2, "cannot read"),
        (("-",), "# nothing\n", 1, "contains no commands"),
        (("-", "--from", "soon"), "0 1 * * * /a", 2, "--from"),
        (("-", "--zone", "Europe/Berln"), "0 1 * * * /a\n0 2 * * * /b", 2, "did you mean 'Europe/Berlin'"),
    ],
)
def test_what_cannot_be_imported_is_a_sentence(arguments, stdin, code, told):
    assert told in call("import", "crontab", *arguments, stdin=stdin, code=code).stderr


def test_bytes_that_are_no_text_refuse_their_line_alone(tmp_path):
    place = tmp_path / "crontab"
    place.write_bytes(b"0 1 * * * /a \xff\n0 2 * * * /b\n")
    report = json.loads(call("import", "crontab", str(place), "--json", code=1).stdout)
    assert [item["job"] for item in report["items"]] == [None, "cron-b"]
