"""The sentence about a cron expression, read back, gives the number of fires that the engine gives."""

from datetime import date, datetime, timedelta

from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from tests.support.cron_reader import fires

from noonmark.core.cron.expression import CronError, parse_cron
from noonmark.core.explanations.cron import describe_cron

SECOND = timedelta(seconds=1)
QUIET = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), database=None)


def field(low: int, high: int, *, more: st.SearchStrategy[str] | None = None) -> st.SearchStrategy[str]:
    """Return texts of a field: `*`, steps, and lists of values, ranges and steps."""
    number = st.integers(low, high)
    step = st.integers(1, high)
    item = (
        number.map(str)
        | st.tuples(number, number).map(lambda pair: f"{pair[0]}-{pair[1]}")
        | st.tuples(number, number, step).map(lambda each: f"{each[0]}-{each[1]}/{each[2]}")
    )
    if more is not None:
        item |= more
    lists = st.lists(item, min_size=1, max_size=4).map(",".join)
    return st.just("*") | step.map(lambda each: f"*/{each}") | number.map(str) | lists


DAYS = (
    st.just("L")
    | st.just("LW")
    | st.integers(1, 9).map(lambda n: f"L-{n}")
    | st.integers(1, 31).map(lambda n: f"{n}W")
)
WEEKDAYS = st.tuples(st.integers(0, 6), st.integers(1, 5)).map(
    lambda pair: f"{pair[0]}#{pair[1]}"
) | st.integers(0, 6).map(lambda day: f"{day}L")
EXPRESSIONS = st.tuples(
    st.just("0") | field(0, 59),
    field(0, 59),
    field(0, 23),
    st.just("*") | field(1, 31, more=DAYS),
    st.just("*") | field(1, 12),
    st.just("*") | field(0, 6, more=WEEKDAYS),
)


@QUIET
@given(EXPRESSIONS, st.booleans(), st.integers(2024, 2031))
def test_a_sentence_read_back_gives_the_number_of_fires(
    fields: tuple[str, ...], minutes_only: bool, year: int
) -> None:
    text = " ".join(fields[1:] if minutes_only else fields)
    try:
        rule = parse_cron(text)
    except CronError:
        assume(False)
    low, high = date(year, 1, 1), date(year + 1, 1, 1)
    sentence = describe_cron(rule).when
    found = rule.count(datetime(year, 1, 1) - SECOND, datetime(year + 1, 1, 1) - SECOND)  # noqa: DTZ001
    event("fires" if found else "no fires")
    assert fires(sentence, low, high) == found, f"{text}: {sentence}"
