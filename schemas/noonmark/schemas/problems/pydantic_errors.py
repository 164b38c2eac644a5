"""Turns pydantic's errors into ours: pointer, what is wrong, what would be right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError
from pydantic.config import JsonDict
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from noonmark.core.kinds.secret_references import has_references
from noonmark.schemas.problems.refusal import FieldError, kind_of, pointer, shown, suggestion

MOST_LISTED: Final = 10
FIRST_LISTED: Final = 6
"""Of a document with more than `MOST_LISTED` fields an error names so many: it may come many times."""

NOT_AVAILABLE: Final = "is not available in this version"


@dataclass(frozen=True, slots=True)
class Expected:
    """What would be right, in words; annotates a field and is quoted in its errors."""

    text: str


def any_case(*words: str) -> str:
    """Return a pattern for the words in any case: JSON Schema has no flag for it."""
    return "^(" + "|".join("".join(f"[{c.upper()}{c.lower()}]" for c in word) for word in words) + ")$"


def any_case_schema(*words: str) -> JsonDict:
    """Return the schema of words taken in any case; editors offer those listed."""
    return {"anyOf": [{"enum": list(words)}, {"type": "string", "pattern": any_case(*words)}]}


class Document(BaseModel):
    """Base of what clients write: unknown fields are refused and nothing is coerced.

    Attributes:
        unavailable: fields, or values of a field, that a later version will take, by name of the field.
            An empty set means the field itself is not available.
        elsewhere: fields that belong inside another field, and which.
        secret: true where values are never quoted in an error, because they may hold credentials.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    unavailable: ClassVar[Mapping[str, frozenset[str]]] = {}
    elsewhere: ClassVar[Mapping[str, str]] = {}
    secret: ClassVar[bool] = False


class PayloadDocument(Document):
    """Base of the payloads of the kinds.

    Attributes:
        purpose: what it is, in words, for the error where there is none.
    """

    secret: ClassVar[bool] = True
    purpose: ClassVar[str]

    def request(self) -> Mapping[str, object]:
        """Return the payload with every default spelt out, as workers read it."""
        raise NotImplementedError


def wrong(message: str, expected: str = "") -> PydanticCustomError:
    """Make the error of a validator whose message is final; `expected` replaces the field's own."""
    context: dict[str, Any] = {"expected_text": expected} if expected else {}
    return PydanticCustomError("not_right", message.replace("{", "(").replace("}", ")"), context)


def without_secrets(expected: str) -> AfterValidator:
    """Make the validator of a place that others can read: it holds no reference to a secret."""

    def check(value: Any) -> Any:
        if has_references(value):
            raise wrong("holds a reference to a secret where others can read it", expected)
        return value

    return AfterValidator(check)


def field_errors(
    error: ValidationError, model: type[Document], base: tuple[str | int, ...] = (), given: object = None
) -> list[FieldError]:
    """Translate each error of a failed validation of `model`, whose value stands at `base`.

    Args:
        error: what the validation raised.
        model: what was to be read.
        base: where its value stands in the document.
        given: the value as the client wrote it; where one thing stands for a list of one, pointers then
            lead to that.
    """
    return [_translate(details, model, base, given) for details in error.errors(include_url=False)]


def unknown_field(name: str, model: type[Document], path: tuple[str | int, ...]) -> FieldError:
    """Answer a field that the model does not have."""
    if name in model.unavailable and not model.unavailable[name]:
        return FieldError(pointer(path), NOT_AVAILABLE, "the field left out")
    if name in model.elsewhere:
        home = model.elsewhere[name]
        return FieldError(pointer(path), f"{NOT_AVAILABLE} outside {home}", f"the field inside {home}")
    known = [field.alias or name for name, field in model.model_fields.items()]
    listed = known if len(known) <= MOST_LISTED else [*known[:FIRST_LISTED], "…"]
    return FieldError(pointer(path), f"unknown field{suggestion(name, known)}", "one of " + ", ".join(listed))


def _translate(
    details: ErrorDetails, model: type[Document], base: tuple[str | int, ...], given: object
) -> FieldError:
    location = details["loc"]
    owner, field = _field_at(model, location)
    in_key = bool(location) and location[-1] == "[key]"
    path = (*base, *_as_written(location[:-1] if in_key else location, given))
    value = details["input"]
    if details["type"] == "extra_forbidden":
        return unknown_field(str(location[-1]), owner, path)
    expected = next((note.text for note in field.metadata if isinstance(note, Expected)), "") if field else ""
    later = owner.unavailable.get(str(location[-1]), frozenset()) if location else frozenset()
    if isinstance(value, str) and value.lower() in later:
        return FieldError(pointer(path), f"{shown(value)} {NOT_AVAILABLE}", expected)
    context = details.get("ctx", {})
    quoted = f"the name {shown(value)}" if in_key else "the value" if owner.secret else shown(value)
    message = _message(details, value, quoted, context)
    return FieldError(pointer(path), message, str(context.get("expected_text", expected)))


def _message(details: ErrorDetails, value: object, quoted: str, context: Mapping[str, Any]) -> str:
    kind = details["type"]
    if kind == "missing":
        return "is missing"
    if kind == "not_right":
        return details["msg"]
    if kind.endswith("_type") or (kind == "literal_error" and not isinstance(value, str)):
        plain = value is None or isinstance(value, dict | list)
        return f"is {kind_of(value)}" if plain else f"{quoted} is {kind_of(value)}"
    template = _LIMITS.get(kind)
    return template(quoted, context) if template else f"{quoted} is not allowed"


_LIMITS: Final[dict[str, Callable[[str, Mapping[str, Any]], str]]] = {
    "greater_than_equal": lambda value, limit: f"{value} is below {limit['ge']:g}",
    "greater_than": lambda value, limit: f"{value} is not above {limit['gt']:g}",
    "less_than_equal": lambda value, limit: f"{value} is above {limit['le']:g}",
    "less_than": lambda value, limit: f"{value} is not below {limit['lt']:g}",
    "string_too_short": lambda _, limit: f"has fewer characters than {limit['min_length']}",
    "string_too_long": lambda _, limit: f"has more characters than {limit['max_length']}",
    "too_long": lambda _, limit: f"has more entries than {limit['max_length']}",
    "too_short": lambda _, limit: f"has fewer entries than {limit['min_length']}",
    "string_pattern_mismatch": lambda value, _: f"{value} has a form that is not allowed",
    "finite_number": lambda value, _: f"{value} is not a finite number",
}


def _field_at(
    model: type[Document], location: tuple[str | int, ...]
) -> tuple[type[Document], FieldInfo | None]:
    """Return the model that owns the deepest named field of a location, and that field."""
    owner, field = model, None
    for part in location:
        inner = _inner_model(field) if field else None
        owner = inner or owner
        if field and not inner:
            break
        found = owner.model_fields.get(str(part))
        if found is None:
            return owner, None
        field = found
    return owner, field


def _inner_model(field: FieldInfo) -> type[Document] | None:
    return _model_in(field.annotation)


def _model_in(annotation: object) -> type[Document] | None:
    """Return the first document that an annotation names, at any depth."""
    if isinstance(annotation, type) and issubclass(annotation, Document):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)


def _as_written(location: tuple[str | int, ...], given: object) -> Iterator[str | int]:
    """Leave out of a location the steps that only the form which is read has, such as a list made of one."""
    value = given
    for part in location:
        if isinstance(value, str | int | float) or (isinstance(part, int) and isinstance(value, dict)):
            continue
        yield part
        if isinstance(value, dict):
            value = value.get(str(part))
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            value = None
