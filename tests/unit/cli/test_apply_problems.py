"""The problems of files are printed in order, and each message about a long list once."""

from noonmark.cli.submissions.apply_files import Problem
from noonmark.cli.submissions.apply_problems import in_order, messages


def of_entries(numbers, message="is hidden"):
    return [Problem("list.json", 1, f"/items/{number}/document", message) for number in numbers]


def test_entries_are_in_the_order_of_their_numbers():
    mixed = of_entries([10, 2, 0, 1])
    assert in_order(mixed) == of_entries([0, 1, 2, 10])
    fields = [Problem("a.yaml", 1, pointer, "x") for pointer in ("/name", "/labels/7", "", "/labels/b")]
    assert [one.pointer for one in in_order(fields)] == ["", "/labels/b", "/labels/7", "/name"]


def test_a_message_about_many_entries_is_told_once():
    assert list(messages(of_entries(range(31)))) == [
        "list.json:1: /items/0/document: is hidden (and 30 more like it, up to /items/30/document)"
    ]


def test_few_entries_and_different_messages_are_told_one_by_one():
    few = of_entries(range(3))
    assert list(messages(few)) == list(map(str, few))
    many = [*of_entries(range(3)), *of_entries(range(3, 6), "is empty")]
    assert list(messages(many)) == list(map(str, many))
    whole = [Problem("jobs.yaml", line, "", "has no schedule") for line in range(1, 9)]
    assert list(messages(whole)) == list(map(str, whole))
