"""Secrets leave no trace in what an attempt leaves, in whatever form it shows them."""

import base64
import json
import random
from urllib.parse import quote, quote_plus, urlencode

import pytest
from tests.unit.worker.hands import hand, success

from noonmark.attempts.outcomes import failed, succeeded
from noonmark.attempts.redaction import Redactor, cleaned

VALUES = [
    "hunter2-hunter2",
    'quote"back\\slash',
    "ümläut ✓ wert",
    "a+b/c=d&e f",
    "line one is here\nline two is here",
    "pass",
]

FORMS = {
    "plain": lambda v: v,
    "json": lambda v: json.dumps({"x": v}),
    "json in utf-8": lambda v: json.dumps({"x": v}, ensure_ascii=False),
    "python": repr,
    "python bytes": lambda v: repr(v.encode()),
    "url": lambda v: quote(v, safe=""),
    "form": lambda v: urlencode({"x": v}),
    "plus": quote_plus,
    "hex": lambda v: v.encode().hex(),
    "base64": lambda v: base64.b64encode(v.encode()).decode(),
    "base64 without padding": lambda v: base64.b64encode(v.encode()).decode().rstrip("="),
    "base64 for urls": lambda v: base64.urlsafe_b64encode(v.encode()).decode(),
    "basic auth": lambda v: base64.b64encode(f"user:{v}".encode()).decode(),
    "basic auth, longer": lambda v: base64.b64encode(f"my-user:{v}:x".encode()).decode(),
}


SHOWN = [
    pytest.param(value, form, id=f"{value[:6]}-{form}")
    for value in VALUES
    for form in FORMS
    # Inside other base64 a value of four characters is not told from chance.
    if len(value) >= 8 or not form.startswith("basic")
]


@pytest.mark.parametrize(("value", "form"), SHOWN)
def test_every_form_of_a_secret_is_taken_out(value, form):
    shown = FORMS[form](value)
    text = Redactor({"key": value}).clean(f"before {shown} after")
    assert text.startswith("before ")
    assert text.endswith(" after")
    assert "[secret:key]" in text
    for trace in (value, *(line for line in value.split("\n") if line)):
        for look in FORMS.values():
            if look is not FORMS["basic auth"] and look is not FORMS["basic auth, longer"]:
                assert look(trace) not in text


def test_a_line_of_a_longer_secret_is_taken_out():
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n"
    assert Redactor({"tls": key}).clean("no key at MIIEvQIBADANBgkq!") == "no key at [secret:tls]!"


def test_the_longer_of_two_secrets_goes_first():
    redactor = Redactor({"short": "abcd", "long": "abcdefgh"})
    assert redactor.clean("abcdefgh abcd") == "[secret:long] [secret:short]"


def test_texts_without_secrets_stay_as_they_are():
    text = "the passage says nothing"
    assert Redactor({"key": "hunter2"}).clean(text) is text
    assert Redactor({}).clean(text) is text


@pytest.mark.parametrize("kept", range(4, 15))
def test_a_piece_of_a_secret_where_the_text_was_cut_is_taken_out(kept):
    redactor = Redactor({"key": "hunter2-hunter2"})
    assert redactor.clean("error: " + "hunter2-hunter2"[:kept], cut=True) == "error: [secret:key]"
    assert redactor.clean("hunter2-hunter2"[-kept:] + " end", cut=True) == "[secret:key] end"


def test_a_text_that_was_not_cut_keeps_words_that_a_secret_begins_with():
    assert Redactor({"key": "data-warehouse-key"}).clean("all my data") == "all my data"


def test_a_result_stays_json():
    redactor = Redactor({"pin": "123456", "odd": 'a","b', "doc": '{"k":1}'})
    result = redactor.clean_json(
        json.dumps({"pin": 123456, "x": 'a","b', "123456": [True, None, 1.5], "d": '{"k":1}'})
    )
    assert json.loads(result) == {
        "pin": "[secret:pin]", "x": "[secret:odd]", "[secret:pin]": [True, None, 1.5], "d": "[secret:doc]",
    }  # fmt: skip


def test_a_result_that_grows_past_the_limit_is_not_kept():
    redactor = Redactor({"n" * 100: "abcd"})
    assert (
        json.loads(redactor.clean_json(json.dumps(["abcd"] * 5000)))
        == "[not stored: too long without its secrets]"
    )


def test_a_rotated_secret_is_known_in_both_its_values():
    redactor = Redactor({"key": "old-value"}).joined(Redactor({"key": "new-value"}))
    assert redactor.clean("old-value new-value") == "[secret:key before] [secret:key]"


def test_an_outcome_is_cleaned_in_all_its_words():
    of = hand(retry={"max_retries": 0})
    log = of.ensure_extras().logged()
    log.stdout.add(b"out hunter2")
    log.stderr.add(b"err hunter2")
    log.add("line hunter2")
    redactor = Redactor({"key": "hunter2"})
    lost = cleaned(failed(of, "failed: hunter2"), redactor)
    assert lost.error == "failed: [secret:key]"
    kept = lost.extras.log
    kept.move(lambda: redactor, final=True)
    assert (kept.stdout.text(), kept.stderr.text(), kept.lines.text()) == (
        "out [secret:key]",
        "err [secret:key]",
        "line [secret:key]\n",
    )
    assert cleaned(succeeded(hand(), {"t": "hunter2"}), redactor).result == '{"t":"[secret:key]"}'


def test_an_outcome_that_says_nothing_stays_as_it_is():
    plain = success(hand())
    assert cleaned(plain, Redactor({"key": "hunter2"})) is plain


@pytest.mark.parametrize("seed", range(30))
def test_no_secret_of_any_characters_survives_in_any_form(seed):
    rng = random.Random(seed)
    value = "".join(rng.choice('abXY09 "\\/+=&%é✓\t-_.') for _ in range(rng.randrange(6, 40)))
    redactor = Redactor({"key": value})
    text = " | ".join(look(value) for name, look in FORMS.items() if not name.startswith("basic"))
    left = redactor.clean(text)
    assert value not in left
    assert base64.b64encode(value.encode()).decode().rstrip("=") not in left
    assert quote(value, safe="") not in left


def test_a_piece_of_a_secret_where_an_excerpt_was_cut_is_taken_out_of_a_result():
    redactor = Redactor({"key": "hunter2-hunter2"})
    excerpt = "x" * 4086 + "hunter2-hu"
    assert json.loads(redactor.clean_json(json.dumps({"body": excerpt}))) == {
        "body": "x" * 4086 + "[secret:key]"
    }
    # A short text is whole: a word that begins like a secret stays.
    assert json.loads(redactor.clean_json(json.dumps("the hunt"))) == "the hunt"
