"""Logs: one JSON object per line on stderr, from noonmark and from libraries, with secrets masked.

Event names are static (`run_started`), and fields contain what varies. Records of other libraries become the
event `library_message`, with their text in `message`. `log_bounds.py` drops and counts floods of lines.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable, MutableMapping
from contextlib import suppress
from typing import Any, Final, Literal, TextIO

import orjson
import structlog
from pydantic import SecretBytes, SecretStr

from noonmark.telemetry.log_bounds import LogBounds
from noonmark.telemetry.routed_output import process_stderr

MASK: Final = "***"

Level = Literal["debug", "info", "warning", "error"]
Event = MutableMapping[str, Any]

_SECRET_KEYS: Final = frozenset(
    {"password", "passwd", "secret", "token", "authorization", "api_key", "apikey", "cookie", "credentials"}
)
# Greedy up to the last "@" before a slash, so that a password with an unescaped "@" is masked completely.
_URL_PASSWORD: Final = re.compile(r"(://[^\s:/@\"']*):[^\s/\"']+@")
_PASSWORD_FIELD: Final = re.compile(
    r"((?:\b|_)(?:ssl)?(?:password|passwd)\s*[=:]\s*)(?:'(?:[^'\\]|\\.)*'|[^\s\"'&,;]+)", re.IGNORECASE
)
_JSON_OPTIONS: Final = orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z | orjson.OPT_NAIVE_UTC


_masks: Final[list[Callable[[str], str]]] = []
_bounds = LogBounds()
"""For every line of the process, whichever logger writes it."""


def mask_also(mask: Callable[[str], str]) -> None:
    """Register a function that masks further secrets in every text that is logged from now on."""
    _masks.append(mask)


def mask_text(text: str) -> str:
    """Mask passwords in URLs (`://user:pass@host`) and in `password=…`, and secrets of `mask_also`."""
    for mask in _masks:
        text = mask(text)
    if "://" in text:
        text = _URL_PASSWORD.sub(rf"\1:{MASK}@", text)
    if "passw" in text.lower():
        text = _PASSWORD_FIELD.sub(rf"\1{MASK}", text)
    return text


def mask_value(value: object) -> object:
    """Mask secrets in a log field, at any depth of dicts and lists."""
    match value:
        case SecretStr() | SecretBytes():
            return MASK
        case dict():
            return {key: _masked(key, inner) for key, inner in value.items()}
        case list() | tuple():
            return [mask_value(inner) for inner in value]
        case str() | bytes() | BaseException():
            return mask_text(_readable(value))
    return value


def _readable(value: str | bytes | BaseException) -> str:
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def mask_secrets(_logger: object, _method: str, event: Event) -> Event:
    """Mask every field (structlog processor). It must run after tracebacks have become text."""
    for key, value in event.items():
        event[key] = _masked(key, value)
    return event


def _masked(key: object, value: object) -> object:
    if isinstance(key, str) and key.lower() in _SECRET_KEYS and value is not None:
        return MASK
    return mask_value(value)


class _Sink:
    """Writes whole lines to one stream; also the wrapped logger of structlog.

    It keeps the stream: handlers can replace `sys.stderr`, and then neither get nor lose the log.
    """

    _lock = threading.Lock()

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def write(self, line: str | bytes) -> None:
        stream = self._stream
        if stream is None:
            return
        data = line.encode("utf-8", "backslashreplace") if isinstance(line, str) else line
        # A log call never raises: the disk may be full, or the stream may be closed or detached.
        with self._lock, suppress(Exception):
            try:
                binary = stream.buffer
            except AttributeError:
                stream.write(data.decode() + "\n")
            else:
                stream.flush()
                binary.write(data + b"\n")
            stream.flush()

    debug = info = warning = warn = error = critical = exception = fatal = log = msg = write


class _LibraryHandler(logging.Handler):
    """Sends records of the standard library's logging through the same processors."""

    def __init__(self, processors: list[structlog.typing.Processor], sink: _Sink) -> None:
        super().__init__()
        self._processors = processors
        self._sink = sink

    def emit(self, record: logging.LogRecord) -> None:
        try:
            event: Any = {
                "event": "library_message",
                "message": record.getMessage(),
                "logger": record.name,
                "level": record.levelname.lower(),
            }
            if record.exc_info:
                event["exc_info"] = record.exc_info
            with suppress(structlog.DropEvent):
                for processor in self._processors:
                    event = processor(None, record.levelname.lower(), event)
                self._sink.write(event)
        except Exception:  # noqa: BLE001 - logging's own contract: report on stderr, never raise
            self.handleError(record)


def configure_logs(service: str, level: Level = "info", style: Literal["json", "console"] = "json") -> None:
    """Route all logging of the process to what is its stderr now.

    Libraries log from warning upwards, or from debug if `level` is debug.

    Args:
        service: value of the field `service` in every line.
        level: the lowest level that is logged.
        style: `json` for machines, `console` for people.
    """
    threshold = getattr(logging, level.upper())
    stream = process_stderr()
    sink = _Sink(stream)

    def add_service(_logger: object, _method: str, event: Event) -> Event:
        event["service"] = service
        return event

    processors: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        _drop_floods,
        structlog.processors.add_log_level,
        add_service,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        mask_secrets,
        _charged(
            _to_json
            if style == "json"
            else structlog.dev.ConsoleRenderer(
                colors=stream is not None and stream.isatty(),
                exception_formatter=structlog.dev.plain_traceback,
            )
        ),
    ]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=lambda *_names: sink,
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    for old in [handler for handler in root.handlers if isinstance(handler, _LibraryHandler)]:
        root.removeHandler(old)
    root.addHandler(_LibraryHandler(processors, sink))
    root.setLevel(threshold if level in {"debug", "error"} else logging.WARNING)
    logging.captureWarnings(capture=True)


def get_logger(**fields: object) -> structlog.typing.FilteringBoundLogger:
    """Return a logger with these fields bound. It is cheap, and configured at its first use."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger(**fields)
    return logger


def report_dropped_lines(ended: Iterable[tuple[object, int]]) -> None:
    """Log how many lines of attempts were dropped, if any; called when they have ended.

    Args:
        ended: run and fence of each attempt; nothing is read from it unless some attempt has written lines.
    """
    if not _bounds.knows_attempts:
        return
    for run_id, fence in ended:
        if (fields := _bounds.end_attempt(run_id, fence)) is not None:
            get_logger().warning("attempt_lines_dropped", **fields)


def _drop_floods(_logger: object, _method: str, event: Event) -> Event:
    """Drop lines above the bounds of the process (structlog processor)."""
    for fields in _bounds.due_reports():
        get_logger().warning("log_lines_dropped", **fields)
    if not _bounds.admit(event):
        raise structlog.DropEvent
    return event


def _charged(render: structlog.typing.Processor) -> structlog.typing.Processor:
    """Charge the size of each rendered line to its allowance."""

    def charge(logger: Any, method: str, event: Event) -> Any:
        # The console renderer removes fields from the event.
        fields = {name: event.get(name) for name in ("event", "logger", "run_id", "fence")}
        line = render(logger, method, event)
        _bounds.charge({name: value for name, value in fields.items() if value is not None}, len(line))
        return line

    return charge


def _to_json(_logger: object, _method: str, event: Event) -> bytes:
    """Render one line. Values that JSON cannot represent become text, because a log call never raises."""
    try:
        return orjson.dumps(event, default=_as_text, option=_JSON_OPTIONS)
    except TypeError:
        plain = {_clean(key): _clean(value) for key, value in event.items()}
        return orjson.dumps(plain)


def _as_text(value: object) -> str:
    return mask_text(str(value))


def _clean(value: object) -> str:
    return mask_text(str(value)).encode("utf-8", "backslashreplace").decode()
