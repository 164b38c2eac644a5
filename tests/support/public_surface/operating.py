"""What operators rely on: settings, metrics, log events, the command line, the chart, topics, entry points."""

from __future__ import annotations

import ast
import re
import tomllib
import typing
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import typer.main
import yaml
from prometheus_client.metrics import MetricWrapperBase
from tests.support.public_surface.sources import PREFIX, REGISTRY, ExitCode, Lane, Settings, Topics
from tests.support.public_surface.spelling import plain, spell

import noonmark
from noonmark.cli.main import app

ROOT: Final = Path(__file__).resolve().parents[3]
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_LEVELS: Final = frozenset({"debug", "info", "warning", "error", "critical", "exception"})
_EVENT: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


def settings() -> dict[str, Any]:
    """Return each setting by its environment variable."""
    found = {}
    for name, info in Settings.model_fields.items():
        limits = {
            key: getattr(item, key)
            for item in info.metadata
            for key in ("gt", "ge", "lt", "le", "pattern", "min_length", "max_length")
            if getattr(item, key, None) is not None
        }
        row = {"type": spell(info.annotation), "default": plain(info.default), **limits}
        found[PREFIX + name.upper()] = row | {"secret": "SecretStr" in row["type"]}
    return found


def metrics() -> dict[str, Any]:
    """Return each metric that noonmark declares; those of the process itself are the library's."""
    found = {}
    for collector in list(REGISTRY._collector_to_names):
        if not isinstance(collector, MetricWrapperBase):
            continue
        (metric,) = collector.describe()
        row: dict[str, Any] = {"type": metric.type, "labels": list(collector._labelnames)}
        if metric.type == "histogram":
            row["buckets"] = [str(bound) for bound in collector._kwargs["buckets"]]
        found[metric.name + ("_total" if metric.type == "counter" else "")] = row
    return found


def log_events() -> dict[str, Any]:
    """Return the levels of each event that is logged.

    Raises:
        AssertionError: an event's name is not static.
    """
    found: dict[str, set[str]] = {}
    for folder in noonmark.__path__:
        for file in sorted(Path(folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                for name, level in _logged(node, file):
                    found.setdefault(name, set()).add(level)
    return {name: sorted(levels) for name, levels in found.items()}


def _logged(node: ast.AST, file: Path) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        keys = {key.value: value for key, value in pairs if isinstance(key, ast.Constant)}
        if {"event", "level"} <= keys.keys() and isinstance(keys["event"], ast.Constant):
            yield str(keys["event"].value), "any"
        return
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    if node.func.attr not in _LEVELS or not _is_logger(node.func.value) or not node.args:
        return
    for text in _texts(node.args[0]):
        assert text is not None, f"{file}:{node.lineno}: the name of an event is static"
        # Those with blanks are sentences of the standard library's logging: they come out as `library_message`.
        if _EVENT.fullmatch(text):
            yield text, "error" if node.func.attr == "exception" else node.func.attr


def _is_logger(thing: ast.expr) -> bool:
    if isinstance(thing, ast.Call):
        thing = thing.func
    name = thing.attr if isinstance(thing, ast.Attribute) else getattr(thing, "id", "")
    return name.lower().strip("_") in {"log", "logger", "get_logger", "getlogger", "client_logger"}


def _texts(thing: ast.expr) -> Iterator[str | None]:
    match thing:
        case ast.IfExp():
            yield from _texts(thing.body)
            yield from _texts(thing.orelse)
        case ast.Constant(value=str() as text):
            yield text
        case _:
            yield None


def command_line() -> dict[str, Any]:
    """Return each command with its arguments and options, and the exit codes."""
    module, _, main = PROJECT["scripts"]["noonmark"].partition(":")
    assert callable(getattr(import_module(module), main))
    root = typer.main.get_command(app)
    codes = {f"exit code {code.name}": int(code) for code in ExitCode}
    return codes | dict(_commands(root, "noonmark"))


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    children = getattr(command, "commands", {})
    yield path, {"kind": "group" if children else "command", "hidden": command.hidden}
    place = 0
    for parameter in command.params:
        row = _parameter(parameter)
        if parameter.param_type_name == "argument":
            row["place"] = place
            place += 1
            yield f"{path} {parameter.name.upper()}", row
        else:
            yield f"{path} {max(parameter.opts, key=len)}", row
    for name, child in children.items():
        yield from _commands(child, f"{path} {name}")


def _parameter(parameter: Any) -> dict[str, Any]:
    kind = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    row: dict[str, Any] = {
        "type": "flag" if getattr(parameter, "is_flag", False) else _value_type(kind),
        "default": "<computed>" if callable(parameter.default) else plain(parameter.default),
        "required": parameter.required,
    }
    if parameter.param_type_name == "option":
        row["flags"] = [*sorted(parameter.opts), *(f"off: {one}" for one in sorted(parameter.secondary_opts))]
    info = getattr(getattr(parameter, "type_descriptor", None), "parameter_info", None)
    more = {
        "envvar": parameter.envvar,
        "many": getattr(parameter, "multiple", False) or parameter.nargs != 1,
        "hidden": getattr(parameter, "hidden", False),
        "prompt": bool(getattr(parameter, "prompt", None)),
        "min": getattr(info, "min", None),
        "max": getattr(info, "max", None),
    }
    return row | {key: value for key, value in more.items() if value not in (None, False)}


def _value_type(kind: Any) -> str:
    """Spell the type of a value; an enumeration by what may be written."""
    while typing.get_args(kind) and typing.get_origin(kind) is not typing.Literal:
        kind = next(one for one in typing.get_args(kind) if one is not type(None))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "|".join(str(one.value) for one in kind)
    return spell(kind)


def chart_values() -> dict[str, Any]:
    """Return every value of the chart with its default."""
    return dict(_leaves(yaml.safe_load((ROOT / "helm/noonmark/values.yaml").read_text(encoding="utf-8")), ""))


def _leaves(values: dict[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def topics() -> dict[str, Any]:
    """Return the names of topics and consumer groups below the usual prefix."""
    names = Topics(Settings.model_fields["topic_prefix"].default)
    kinds = ("submissions", "submissions_bulk", "lifecycle", "rejections", "dead", "alerts")
    found: dict[str, Any] = {f"topic {getattr(names, kind)}": kind for kind in kinds}
    known = {spec.name for spec in names.base_specs()}
    assert known == {getattr(names, kind) for kind in kinds}, "a topic is missing here"
    for lane in Lane:
        found[f"topic {names.runs('pool', lane)}"] = "runs"
        found[f"group {names.group_worker('pool', lane)}"] = "worker"
    return found | {f"group {names.group_intake}": "intake", f"group {names.group_observer}": "observer"}


def entry_points() -> dict[str, Any]:
    """Return what the distribution installs: scripts by name, the plugin of pytest with its target and fixtures."""
    found: dict[str, Any] = {f"script {name}": True for name in PROJECT["scripts"]}
    for group, points in PROJECT["entry-points"].items():
        for name, target in points.items():
            found[f"{group} {name}"] = target
            found |= {f"fixture {one}": True for one in _fixtures(target)}
    found |= {f"extra {name}": True for name in PROJECT["optional-dependencies"]}
    return found | {"python": PROJECT["requires-python"]}


def _fixtures(target: str) -> Iterator[str]:
    for name, thing in vars(import_module(target)).items():
        if type(thing).__name__ == "FixtureFunctionDefinition" and thing.__module__ == target:
            yield thing._get_wrapped_function().__name__ if name.startswith("_") else name
