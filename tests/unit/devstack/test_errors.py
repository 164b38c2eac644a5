import errno

import pytest

from noonmark.devstack.processes.errors import DevStackError, explain_log, explain_os_error


def test_an_error_reads_as_what_happened_then_what_to_do_then_the_detail() -> None:
    error = DevStackError("It broke.", remedy="Mend it.", detail="last line")
    assert str(error) == "It broke. Mend it.\nlast line"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_named_with_the_file_and_a_way_out(number: int) -> None:
    error = explain_os_error(OSError(number, "No space left on device", "/data/x"), "starting Kafka")
    assert str(error).startswith("The disk is full while starting Kafka (/data/x).")
    assert "--state-dir" in str(error)


def test_a_refused_permission_names_the_file() -> None:
    error = explain_os_error(PermissionError(errno.EACCES, "Permission denied", "/root/x"), "starting Kafka")
    assert "Permission denied while starting Kafka (/root/x): Permission denied." in str(error)


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("FATAL:  could not write: No space left on device", "The disk is full while starting Kafka."),
        ("java.net.BindException: Address already in use", "The port of Kafka is in use"),
    ],
)
def test_a_known_cause_is_read_from_the_log(log: str, expected: str) -> None:
    error = explain_log(log, name="Kafka", port_option="--kafka-port")
    assert error is not None
    assert str(error).startswith(expected)


def test_an_unknown_cause_is_left_to_the_caller() -> None:
    assert explain_log("something else", name="Kafka", port_option="--kafka-port") is None
