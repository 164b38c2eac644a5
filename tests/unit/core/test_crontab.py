"""Crontabs are read as cron reads them."""

import pytest

from noonmark.core.crontab.fields import CrontabError, times_of
from noonmark.core.crontab.reader import CronEntry, Refused, is_system_path, parse_crontab, split_input


def entries(text, *, system=False):
    return list(parse_crontab(text, system=system).lines)


def only(text, *, system=False):
    (entry,) = entries(text, system=system)
    return entry


def reason(text, *, system=False):
    refused = only(text, system=system)
    assert isinstance(refused, Refused)
    return refused.reason


def test_a_line_of_the_user_form_is_five_fields_and_a_command():
    entry = only("15\t4 1-7 * mon   /opt/close  --day 'a b' \n")
    assert (entry.line, entry.schedule, entry.command) == (1, "15 4 1-7 * mon", "/opt/close  --day 'a b'")
    assert (entry.user, entry.stdin, entry.zone, entry.delay_minutes, entry.quiet) == (
        None,
        None,
        None,
        0,
        False,
    )


def test_a_line_of_the_system_form_names_a_user():
    entry = only("17 * * * *  root  cd / && run-parts /etc/cron.hourly", system=True)
    assert (entry.user, entry.command) == ("root", "cd / && run-parts /etc/cron.hourly")


def test_blank_lines_comments_and_line_ends_of_other_systems_are_passed_over():
    found = entries("\r\n  # a comment\r\n\t\n0 1 * * * /a\r\n#0 2 * * * /b\n  0 3 * * * /c")
    assert [(entry.line, entry.command) for entry in found] == [(4, "/a"), (6, "/c")]


def test_variables_hold_for_the_lines_below_them():
    first, second, third = entries(
        "0 1 * * * /a\nPATH=/opt/bin:/bin\n 'A' = \" x y \"\nB='z'\n0 2 * * * /b\nPATH=/bin\nB=\n0 3 * * * /c"
    )
    assert dict(first.environment) == {}
    assert dict(second.environment) == {"PATH": "/opt/bin:/bin", "A": " x y ", "B": "z"}
    assert dict(third.environment) == {"PATH": "/bin", "A": " x y ", "B": ""}


def test_a_value_is_taken_as_it_stands():
    assert dict(only("A=$HOME/x # no comment\n0 1 * * * /a").environment) == {"A": "$HOME/x # no comment"}


def test_zone_and_delay_hold_from_their_line_on_and_are_no_variables_of_the_command():
    found = entries(
        "0 1 * * * /a\nCRON_TZ=Asia/Tokyo\nRANDOM_DELAY=10\n0 2 * * * /b\nCRON_TZ=\nRANDOM_DELAY=0\n0 3 * * * /c"
    )
    assert [(entry.zone, entry.delay_minutes) for entry in found] == [
        (None, 0),
        ("Asia/Tokyo", 10),
        (None, 0),
    ]
    assert all(not entry.environment for entry in found)


def test_what_mail_would_need_is_noted_and_nobody_s_variable():
    crontab = parse_crontab('MAILTO=a@example.com\nMAILFROM=""\nTZ=Asia/Tokyo\n0 1 * * * /a', system=False)
    (entry,) = crontab.lines
    assert dict(entry.environment) == {"TZ": "Asia/Tokyo"}
    assert [line for line, _ in crontab.notes] == [1, 3]


@pytest.mark.parametrize(
    ("nickname", "fields"),
    [
        ("@yearly", "0 0 1 1 *"), ("@annually", "0 0 1 1 *"), ("@monthly", "0 0 1 * *"), ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"), ("@midnight", "0 0 * * *"), ("@hourly", "0 * * * *"), ("@DAILY", "0 0 * * *"),
    ],
)  # fmt: skip
def test_nicknames_stand_for_fields(nickname, fields):
    assert only(f"{nickname}  /a").schedule == fields
    assert only(f"{nickname} joe /a", system=True).user == "joe"


def test_lines_share_the_variables_above_them_and_there_are_so_many_at_most():
    text = "".join(f"V{n}=x\n" for n in range(100))
    first, second, third = entries(f"{text}0 1 * * * /a\n0 1 * * * /b\nV0=y\n0 1 * * * /c")
    assert first.environment is second.environment
    assert (first.environment["V0"], third.environment["V0"], len(third.environment)) == ("x", "y", 100)
    assert "more than 100 variables" in reason(f"{text}ANOTHER=x\n0 1 * * * /a")


def test_a_dash_keeps_cron_quiet():
    entry = only("-*/5 * * * * /a")
    assert (entry.quiet, entry.schedule) == (True, "*/5 * * * *")


@pytest.mark.parametrize(
    ("text", "command", "stdin"),
    [
        ("mail joe", "mail joe", None),
        ("mail joe%Hi%bye", "mail joe", "Hi\nbye\n"),
        ("mail joe%Hi%", "mail joe", "Hi\n"),
        ("date +\\%F", "date +%F", None),
        ("mail -s '5\\% off'%only 5\\%", "mail -s '5% off'", "only 5%\n"),
        ("cat%", "cat", ""),
        ("cat%%", "cat", "\n"),
        ("a 'C:\\\\'%b", "a 'C:\\\\'", "b\n"),
        ("a \\\\%b", "a \\\\", "b\n"),
        ("a \\\\\\%b", "a \\\\%b", None),
        ("a%b\\\\%c", "a", "b\\%c\n"),
    ],
)
def test_a_percent_sign_begins_what_the_command_reads(text, command, stdin):
    assert split_input(text) == (command, stdin)


@pytest.mark.parametrize(
    ("options", "quiet", "single"),
    [("", False, False), ("-n ", False, False), ("-q\t", True, False), ("-s ", False, True), ("-n -s -q ", True, True), ("-ns ", False, True)],
)  # fmt: skip
def test_options_of_cron_before_a_command_are_not_part_of_it(options, quiet, single):
    for text, system in ((f"0 9 * * * {options}/a -n b", False), (f"0 9 * * * www {options}/a -n b", True)):
        entry = only(text, system=system)
        assert (entry.command, entry.quiet, entry.single) == ("/a -n b", quiet, single)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("@reboot /a", "@reboot is not a time"),
        ("@every 5m /a", "cron does not know @every"),
        ("@fortnightly /a", "'@fortnightly' is not a nickname"),
        ("@daily", "no command follows"),
        ("0 9 * * *", "no command follows"),
        ("0 9 * *", "4 of the five time fields"),
        ("hello", "1 of the five time fields"),
        ("60 * * * * /a", "'60' is not a value of cron's minute field: use 0 to 59"),
        ("* 24 * * * /a", "'24' is not a value of cron's hour field"),
        ("* * 0 * * /a", "'0' is not a value of cron's day-of-month field: use 1 to 31"),
        ("* * * foo * /a", "'foo' is not a value of cron's month field: use 1 to 12 or jan to dec"),
        ("* * * * 8 /a", "'8' is not a value of cron's day-of-week field: use 0 to 7 or sun to sat"),
        ("*/0 * * * * /a", "the step of '*/0'"),
        ("*/x * * * * /a", "the step of '*/x'"),
        ("5/15 * * * * /a", "write 5-59/15, or 5"),
        ("0 22-2 * * * /a", "runs backwards"),
        ("*/00 * * * * /a", "the step of '*/00' in the minute field is not a number from 1 up"),
        ("*/60 * * * * /a", "the step of '*/60' in the minute field is longer than 59"),
        ("0 */24 * * * /a", "some refuse the line; write 0 for the first value only"),
        ("0 0 */31 * * /a", "in the day-of-month field is longer than 30"),
        ("0 0 1 */12 * /a", "write 1 for the first value only"),
        ("0 0 3-9/99999 * * /a", "write 3 for the first value only"),
        ("0 0 * * */8 /a", "longer than 7"),
        ("0~30 * * * * /a", "create the job with H(0-30) in this field"),
        ("0~59 3 * * * /a", "create the job with H in this field"),
        ("~ 3 * * * /a", "cron picks a random value for '~' in the minute field"),
        ("0 ~6 * * * /a", "create the job with H(0-6) in this field"),
        ("~/10 3 * * * /a", "create the job with H/10 in this field"),
        ("61 25 * * 8 /a", "'61' is not a value of cron's minute field: use 0 to 59; '25' is not a value of cron's hour"),
        ("0 0 * * * -x /a", "'-x' before the command is not an option of cron"),
        ("0 0 * * * -nx /a", "'-nx' before the command"),
        ("0 0 * * * - /a", "'-' before the command"),
        ("0 0 * * * -s", "no command follows -s"),
        ("0 0 L * * /a", "'L' is not a value"),
        ("H * * * * /a", "'H' is not a value"),
        ("1,,2 * * * * /a", "'' is not allowed"),
        ("0 0 * * * * /a", "no seconds and no year"),
        ("0 0 * * * root /a", "is this the system form?"),
        ("0 0 * * * %only input", "everything is after a %"),
        ("0 0 * * * /a \0 b", "NUL"),
        ("0 0 * * * /a \udcff", "not UTF-8"),
        ("0 0 * * * /" + "a" * 140_000, "cron reads at most 131072"),
    ],
)  # fmt: skip
def test_a_line_that_no_job_can_stand_for_is_refused_with_its_reason(line, told):
    assert told in reason(line)


def test_the_system_form_needs_a_command_behind_the_user():
    assert "the system form has a user" in reason("0 0 * * * root", system=True)


def test_a_delay_that_is_no_number_refuses_the_lines_below_it_alone():
    first, second, third = entries(
        "0 1 * * * /a\nRANDOM_DELAY=soon\n0 2 * * * /b\nRANDOM_DELAY=5\n0 3 * * * /c"
    )
    assert isinstance(first, CronEntry)
    assert "RANDOM_DELAY above is 'soon'" in second.reason
    assert third.delay_minutes == 5


def test_a_bad_line_takes_nothing_else_with_it():
    found = entries("0 1 * * * /a\n61 1 * * * /b\n0 2 * * * /c")
    assert [type(entry) for entry in found] == [CronEntry, Refused, CronEntry]


def test_an_endless_file_is_not_read():
    with pytest.raises(CrontabError, match="at most 100000"):
        parse_crontab("\n" * 100_001, system=False)


@pytest.mark.parametrize(
    ("path", "system"),
    [("/etc/crontab", True), ("/etc/cron.d/shop", True), ("/etc/crontabs/root", False), ("crontab", False)],
)
def test_where_a_file_lies_tells_its_form(path, system):
    assert is_system_path(path) is system


def test_fields_stand_for_values():
    times = times_of(["*/20", "1,3-5", "1-31/15", "jan-MAR,12", "Mon-fri,7"])
    assert times.minutes == {0, 20, 40}
    assert times.hours == {1, 3, 4, 5}
    assert times.days == {1, 16, 31}
    assert times.months == {1, 2, 3, 12}
    assert times.weekdays == {0, 1, 2, 3, 4, 5}
    assert (times.days_starred, times.wild) == (False, True)
