"""Any publisher can send headers that cannot be decoded: they must not stop the partition."""

from noonmark.kafka.consumers.records import UNREADABLE_HEADERS, read_headers


class Message:
    """A client's message whose headers return, or raise, a given answer."""

    def __init__(self, answer):
        self._answer = answer

    def headers(self):
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer


def test_headers_are_given_as_they_are():
    headers = [("ce_id", b"1")]
    assert read_headers(Message(headers)) is headers
    assert read_headers(Message(None)) is None


def test_headers_with_a_key_that_is_not_utf_8_are_marked():
    broken = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
    assert read_headers(Message(broken)) is UNREADABLE_HEADERS
    # What the C extension raises if the error occurred inside one of its own calls.
    assert read_headers(Message(SystemError("returned a result with an exception set"))) is UNREADABLE_HEADERS
