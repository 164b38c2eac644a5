"""Generates the chart's reference of values: `python helm/reference.py`.

- README.md, between its two markers: the table of values, from values.yaml and the `# --` comments there;
- values.schema.json, `definitions.config`: the settings that `config` may hold, from `Settings`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args, get_origin

import yaml
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from noonmark.settings import Settings

CHART: Final = Path(__file__).parent / "noonmark"
BEGIN: Final = "<!-- values: written by helm/reference.py -->\n"
END: Final = "<!-- end of values -->\n"

OWN: Final = frozenset(
    {
        "kafka_bootstrap",
        "kafka_security_protocol",
        "kafka_sasl_mechanism",
        "kafka_sasl_username",
        "kafka_ssl_ca_location",
        "kafka_ssl_certificate_location",
        "kafka_ssl_key_location",
        "kafka_group_protocol",
        "kafka_partitions",
        "kafka_replication",
        "topic_prefix",
        "api_host",
        "api_port",
        "metrics_host",
        "metrics_port",
        "pool",
        "handlers",
        "worker_slots",
        "secrets_dir",
        # Its path can contain a token, so it comes from a Secret, with the signing key.
        "alert_webhook_url",
        # Settings of the command line.
        "api_url",
        "context",
        "config",
    }
)
"""Settings that have a chart value or that no service reads. `config` rejects them, like secrets."""

_LINE: Final = re.compile(r"(?P<indent> *)(?P<key>[A-Za-z][A-Za-z0-9]*):(?: .*)?")


@dataclass(frozen=True, slots=True)
class Value:
    """One row of the table: dotted path, default, comment."""

    path: str
    default: Any
    meaning: str


def documented(text: str) -> Iterator[Value]:
    """Yield every value that has a `# --` comment, in the order of the file."""
    values = yaml.safe_load(text)
    path: list[str] = []
    comment: list[str] = []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("# -- "):
            comment = [stripped[5:]]
        elif stripped.startswith("#") and comment:
            comment.append(stripped[1:].strip())
        elif (found := _LINE.fullmatch(line)) is not None:
            path = [*path[: len(found["indent"]) // 2], found["key"]]
            if comment:
                yield Value(".".join(path), _at(values, path), " ".join(comment))
            comment = []
        else:
            comment = []


def _at(values: Any, path: list[str]) -> Any:
    for key in path:
        values = values[key]
    return values


def table(text: str) -> str:
    """Return the rows of the README."""
    rows = ["| value | default | meaning |", "|---|---|---|"]
    for value in documented(text):
        default = json.dumps(value.default, ensure_ascii=False)
        shown = default if len(default) <= 60 else "see values.yaml"
        rows.append(f"| `{value.path}` | `{shown}` | {value.meaning.replace('|', chr(92) + '|')} |")
    return "\n".join(rows) + "\n"


def readme(current: str, values: str) -> str:
    """Return the README with a new table between its markers."""
    head, _, rest = current.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{table(values)}\n{END}{tail}"


def schema(current: str) -> str:
    """Return the schema of the values with the current settings."""
    document = json.loads(current)
    document["definitions"]["config"] = config_schema()
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def config_schema() -> dict[str, Any]:
    """Return the schema of `config`: settings that are neither secret nor set by the chart."""
    exported = Settings.model_json_schema()["properties"]
    properties = {}
    for name, info in Settings.model_fields.items():
        if name in OWN or info.annotation is SecretStr:
            continue
        kept = ("type", "enum", "minimum", "maximum", "exclusiveMinimum", "pattern")
        is_list = get_origin(info.annotation) is tuple
        shape = _list(info) if is_list else exported[name]
        properties[name] = {
            "description": info.description,
            **{key: shape[key] for key in (*kept, "items", "minItems", "maxItems") if key in shape},
        }
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _list(info: FieldInfo) -> dict[str, Any]:
    """Return the schema of a list: numbers, or strings that are joined with commas."""
    if float in get_args(info.annotation):
        many = len(info.default)
        return {"type": "array", "items": {"type": "number"}, "minItems": many, "maxItems": many}
    return {"type": "array", "items": {"type": "string", "pattern": "^[^,]+$"}}


def main() -> None:
    """Write both files."""
    values = (CHART / "values.yaml").read_text(encoding="utf-8")
    for name, write in (("README.md", lambda text: readme(text, values)), ("values.schema.json", schema)):
        file = CHART / name
        file.write_text(write(file.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
