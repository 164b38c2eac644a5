"""Cron expressions in plain English."""

import pytest

from noonmark.core.cron.expression import parse_cron
from noonmark.core.explanations.cron import describe_cron

SENTENCES = {
    # Minutes.
    "* * * * *": "Every minute",
    "*/15 * * * *": "Every 15 minutes",
    "0,15,30,45 * * * *": "Every 15 minutes",
    "0-59/15 * * * *": "Every 15 minutes",
    "5/20 * * * *": "Every 20 minutes from :05",
    "15,45 * * * *": "Every 30 minutes from :15",
    "*/25 * * * *": "At :00, :25 and :50 of every hour",
    "0,7,19 * * * *": "At :00, :07 and :19 of every hour",
    "0-10 * * * *": "Every minute from :00 to :10 of every hour",
    "0-20/5 * * * *": "Every 5 minutes from :00 to :20 of every hour",
    "2-0 0 * * *": "Every minute from :02 to :00 of the hour 00, every day",
    "1,2,5,7,9,23,40,41,50 * * * *": "At :01, :02, :05, :07, :09, :23, :40, :41 and :50 of every hour",
    "55-5 * * * *": "Every minute from :55 to :05 of every hour",
    # Hours.
    "0 * * * *": "Every hour, on the hour",
    "5 * * * *": "Every hour at :05",
    "30 2 * * *": "Every day at 02:30",
    "0 9,17 * * *": "Every day at 09:00 and 17:00",
    "15,45 2 * * *": "Every day at 02:15 and 02:45",
    "0 */2 * * *": "Every 2 hours from 00:00",
    "15 */2 * * *": "Every 2 hours from 00:15",
    "0 */5 * * *": "Every day at 00:00, 05:00, 10:00, 15:00 and 20:00",
    "30 2-23/4 * * *": "Every 4 hours from 02:30",
    "23 0-20/2 * * *": "Every 2 hours from 00:23 to 20:23, every day",
    "0 22-2 * * *": "Every hour from 22:00 to 02:00, every day",
    "* 22-2 * * *": "Every minute from 22:00 to 02:59, every day",
    "*/15 9-17 * * *": "Every 15 minutes from 09:00 to 17:45, every day",
    "*/20 3 * * *": "Every day at 03:00, 03:20 and 03:40",
    "*/10 3 * * *": "Every 10 minutes from 03:00 to 03:50, every day",
    "0-10 9-17 * * *": "Every minute from :00 to :10 of each hour from 09 to 17, every day",
    "*/15 */2 * * *": "Every 15 minutes of every 2nd hour from 00, every day",
    "7,23,41 3,4,5 * * *": "At :07, :23 and :41 of each hour from 03 to 05, every day",
    "*/10 1,7,8 * * *": "Every 10 minutes of the hours 01, 07 and 08, every day",
    "0 1,2,4,7,11,16,22 * * *": "Every day at 01:00, 02:00, 04:00, 07:00, 11:00, 16:00 and 22:00",
    # Weekdays.
    "0 8 * * 1": "Every Monday at 08:00",
    "0 8 * * 7": "Every Sunday at 08:00",
    "0 8 * * 0,6": "Every Saturday and Sunday at 08:00",
    "0 8 * * 1-5": "Every day from Monday to Friday at 08:00",
    "0 8 * * FRI-MON": "Every day from Friday to Monday at 08:00",
    "0 8 * * 1,3,5": "Every Monday, Wednesday and Friday at 08:00",
    "0 8 * * */2": "Every Tuesday, Thursday, Saturday and Sunday at 08:00",
    "0 9-17 * * 1-5": "Every hour from 09:00 to 17:00, every day from Monday to Friday",
    "* * * * 1": "Every minute, every Monday",
    "0 0 ? * 5": "Every Friday at 00:00",
    "0 9 * * 1#1": "On the first Monday of the month at 09:00",
    "0 9 * * 5#5": "On the fifth Friday of the month at 09:00",
    "0 17 * * FRIL": "On the last Friday of the month at 17:00",
    "0 17 * 3,6 5L": "On the last Friday of March and June at 17:00",
    "0 0 * * 1-5,6#2": "Every day from Monday to Friday, and on the second Saturday of the month, at 00:00",
    "0 0 * 3 MON,SUNL": "Every Monday in March, and on the last Sunday of March, at 00:00",
    # Dates.
    "0 0 1 * *": "On the 1st of the month at 00:00",
    "0 0 1,15 * *": "On the 1st and 15th of the month at 00:00",
    "0 0 1-7 * *": "On the 1st to 7th of the month at 00:00",
    "0 0 28-3 * *": "On the 28th to 3rd of the month at 00:00",
    "0 0 1-3,5-31 * *": "On every day but the 4th of the month at 00:00",
    "0 0 */10 * *": "On the 1st, 11th, 21st and 31st of the month at 00:00",
    "0 0 */2 * *": "On the 1st, 3rd, 5th, … and 31st of the month, at 00:00",
    "0 0 31 * *": "On the 31st of the month at 00:00",
    "0 0 29 2 *": "Every year on 29 February at 00:00",
    "0 0 1 1,7 *": "On the 1st of January and July at 00:00",
    "0 0 1 11-2 *": "On the 1st of each month from November to February at 00:00",
    "0 0 L * *": "On the last day of the month at 00:00",
    "0 9 L-3 * *": "On the 3rd day before the last of the month at 09:00",
    "0 9 15W * *": "On the weekday (Monday to Friday) nearest to the 15th of the month at 09:00",
    "0 9 LW * *": "On the last weekday (Monday to Friday) of the month at 09:00",
    "0 0 1,L * *": "On the 1st and the last day of the month at 00:00",
    # Months.
    "5 0 * 8 *": "Every day in August at 00:05",
    "0 8 * 11-2 *": "Every day from November to February at 08:00",
    "0 0 * */3 *": "Every day in January, April, July and October at 00:00",
    "15 10 * jan,JUL Mon-fri": "Every day from Monday to Friday in January and July at 10:15",
    "0 8 * nov-feb mon-fri": "Every day from Monday to Friday, from November to February, at 08:00",
    # Both day fields.
    "30 4 1,15 * 5": "On the 1st and 15th of the month, and also every Friday, at 04:30",
    "0 0 1 1 1": "On the 1st of January, and also every Monday in January, at 00:00",
    "0 0 */2 * 1": "Every Monday that is the 1st, 3rd, 5th, … or 31st of the month, at 00:00",
    "0 0 1-31 * 4": "Every day at 00:00",
    "0 9 1 * 0/1": "Every day at 09:00",
    "0 12 *,10 * SUN": "Every Sunday at 12:00",
    # Seconds.
    "* * * * * *": "Every second",
    "*/20 * * * * *": "Every 20 seconds",
    "30 0 12 * * 1": "Every Monday at 12:00:30",
    "0 */5 * * * *": "Every 5 minutes",
    "30 */5 * * * *": "Every 5 minutes, at second 30",
    "5,35 * * * * *": "Every 30 seconds from second 5",
    "1,2,30 * * * * *": "At seconds 1, 2 and 30 of every minute",
    "* 0 12 * * *": "Every second of the minute 12:00, every day",
    "*/10 * 9-17 * * *": "Every 10 seconds from 09:00:00 to 17:59:50, every day",
    # Nicknames.
    "@hourly": "Every hour, on the hour",
    "@daily": "Every day at 00:00",
    "@weekly": "Every Sunday at 00:00",
    "@monthly": "On the 1st of the month at 00:00",
    "@yearly": "Every year on 1 January at 00:00",
}
QUARTZ = {
    "0 0 12 ? * 2-6": "Every day from Monday to Friday at 12:00",
    "0 0 12 ? * 6L": "On the last Friday of the month at 12:00",
    "0 0 12 ? * L": "Every Saturday at 12:00",
    "0 0 6 2 2 ? 2030": "On 2 February 2030 at 06:00",
    "0 30 9 1 1 ? 2027-2029": "Every year on 1 January, from 2027 to 2029, at 09:30",
    "0 0 9 1 * ? 2027,2031": "On the 1st of the month, in 2027 and 2031, at 09:00",
    "0 0 9 ? * MON 2026/2": "Every Monday, every 2nd year from 2026, at 09:00",
}


def details(expression: str, **more: str) -> list[str]:
    dialect = more.get("dialect", "unix")
    return describe_cron(parse_cron(expression, seed="billing", **more), dialect=dialect).details


@pytest.mark.parametrize(("expression", "sentence"), SENTENCES.items(), ids=SENTENCES)
def test_an_expression_reads_as_a_person_would_say_it(expression, sentence):
    assert describe_cron(parse_cron(expression)).when == sentence


@pytest.mark.parametrize(("expression", "sentence"), QUARTZ.items(), ids=QUARTZ)
def test_a_quartz_expression_reads_as_quartz_means_it(expression, sentence):
    assert describe_cron(parse_cron(expression, dialect="quartz"), dialect="quartz").when == sentence


def test_six_fields_say_where_the_seconds_were_read():
    first = parse_cron("*/20 * * * * *")
    last = parse_cron("*/20 * * * * *", seconds_field="last")
    assert describe_cron(first).details == ["The first of the 6 fields is read as the seconds."]
    assert describe_cron(last) == (
        "Every second of the minutes :00, :20 and :40 of every hour",
        ["The last of the 6 fields is read as the seconds."],
    )


def test_a_question_mark_before_numbered_weekdays_may_be_meant_for_quartz():
    expression = "0 0 12 ? * 2-6"
    assert any("set the dialect to quartz" in line for line in details(expression))
    assert not any("dialect to quartz" in line for line in details("0 0 12 ? * MON#2"))
    assert not any("dialect to quartz" in line for line in details("0 0 12 * * 2-6"))
    assert not any("dialect to quartz" in line for line in details(expression, dialect="quartz"))


def test_the_day_rule_is_stated_where_it_matters():
    assert "Neither day field starts with *: a day fires when its date or its weekday matches." in details(
        "30 4 1,15 * 5"
    )
    assert "A day field starts with *: a day fires only when its date and its weekday match." in details(
        "0 0 */2 * 1"
    )
    assert details("0 0 1 * *") == details("0 0 * * 5") == []


def test_a_full_range_beside_the_other_day_field_is_pointed_out():
    (told,) = details("0 0 1-31 * 4")
    assert "day-of-month field names every day without starting with *" in told
    assert "day-of-week field excludes nothing" in told


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("0 0 */10 * *", "Day steps start again each month: the 31st and the next 1st are 1 day apart in a month of 31 days."),
        ("*/25 * * * *", "25 does not divide 60, so the count starts again with each hour: :50 and the next :00 are 10 minutes apart."),
        ("0 */5 * * *", "5 does not divide 24, so the count starts again with each day: 20:00 and the next 00:00 are 4 hours apart."),
        ("0 0 * * */2", "Weekday steps start again each week, on Sunday."),
        ("0 0 31 * *", "Months without a 31st are skipped."),
        ("0 0 29 2 *", "Only leap years have a 29 February."),
        ("0 0 29 * *", "February has a 29th in leap years only."),
        ("0 9 * * 5#5", "Months without a fifth Friday are skipped."),
        ("0 9 * * 1,5#5", "Months without a fifth Friday fire only on the other days."),
        ("0 0 30 * *", "Months without a 30th are skipped."),
        ("0 0 15,31 * *", "Months without a 31st fire only on the other days."),
        ("0 0 31,L * *", "Months without a 31st fire only on the other days."),
        ("0 0 31 * 5", "Months without a 31st fire only on the other days."),
        ("0 0 31 * */5", "Months without a 31st are skipped."),
        ("0 0 1,29 2 *", "February has a 29th in leap years only."),
        ("0 9 1W * *", "The nearest weekday is always in the same month."),
    ],
)  # fmt: skip
def test_what_may_surprise_is_said(expression, told):
    assert told in details(expression)


@pytest.mark.parametrize(
    ("expression", "passed"),
    [
        ("59 23 31 12 *", False),
        ("0 0 31 1,3,5,7,8,10,12 *", False),
        ("0 0 30 4 *", False),
        ("0 0 30,31 6 *", False),
        ("0 0 31 1-4 *", True),
        ("0 0 30 2,3 *", True),
        ("0 0 30 * *", True),
        ("0 0 15,31 * *", False),
        ("0 0 25-31 * *", False),
        ("0 0 */2 * *", False),
    ],
)
def test_months_are_passed_over_only_where_one_of_them_lacks_the_day(expression, passed):
    assert any("are skipped" in line for line in details(expression)) == passed


def test_hours_over_midnight_say_to_which_day_they_belong_where_that_matters():
    (told,) = details("0 22-2 * * MON")
    assert told == (
        "The hours cross midnight, but a fire's own date must match: such a day has the hours 00 to 02, and"
        " then those from 22."
    )
    assert details("0 22-2 * * *") == details("0 9-17 * * MON") == []


def test_h_says_what_it_came_out_as_and_the_sentence_uses_it():
    words = describe_cron(parse_cron("H H(1-4) * * *", seed="billing"))
    rule = parse_cron("H H(1-4) * * *", seed="billing")
    minute, hour = rule.minutes.bit_length() - 1, rule.hours.bit_length() - 1
    assert words.when == f"Every day at {hour:02}:{minute:02}"
    assert words.details == [
        f"H in the minute field resolves to {minute}, from the job's name.",
        f"H in the hour field resolves to {hour}, from the job's name.",
    ]
    assert details("0 0 * * THU") == []


def test_quartz_says_how_it_counts_weekdays_only_where_numbers_are_written():
    counted = "Weekdays are read as Quartz counts them: 1 is Sunday, 7 is Saturday."
    assert counted in details("0 0 12 ? * 2-6", dialect="quartz")
    assert counted not in details("0 0 12 ? * MON#2", dialect="quartz")


@pytest.mark.parametrize("expression", [*SENTENCES, "0 0 29,30 * *", "1-59/2 1-23/2 L-5W * 1L"])
def test_no_expression_leaves_words_out_or_doubles_spaces(expression):
    when, told = describe_cron(parse_cron(expression))
    for sentence in (when, *told):
        assert sentence
        assert "  " not in sentence
        assert sentence == sentence.strip(" ,")
