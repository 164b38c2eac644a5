"""Translates pydantic's errors into field errors: JSON pointer, message, expected value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError
from pydantic.config import JsonDict
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from noonmark.core.kinds.secret_references import has_references
from noonmark.core.visible_text import invisible_character
from noonmark.schemas.problems.constraints import allowed_values
from noonmark.schemas.problems.refusal import FieldError, kind_of, pointer, shown
from noonmark.schemas.problems.suggestions import suggestion

MOST_LISTED: Final = 10
FIRST_LISTED: Final = 6
"""Number of fields that an error lists when the document has more than `MOST_LISTED`; errors may repeat."""

NOT_AVAILABLE: Final = "is not available in this version"


@dataclass(frozen=True, slots=True)
class Expected:
    """Describes the allowed values; annotates a field, and its errors quote it."""

    text: str


def any_case(*words: str) -> str:
    """Return a pattern that matches the words in any case; JSON Schema has no flag for this."""
    return "^(" + "|".join("".join(f"[{c.upper()}{c.lower()}]" for c in word) for word in words) + ")$"


def any_case_schema(*words: str) -> JsonDict:
    """Return the schema of words in any case; editors suggest the listed spelling."""
    return {"anyOf": [{"enum": list(words)}, {"type": "string", "pattern": any_case(*words)}]}


class Document(BaseModel):
    """Base of documents that clients write: unknown fields are refused and no value is coerced.

    Attributes:
        unavailable: fields, or values of a field, that a later version will accept, by field name.
            An empty set means the field itself is not available.
        elsewhere: fields that belong inside another field, with the name of that field.
        synonyms: what other schedulers call the fields, with our names; see `other_names`.
        secret: True if errors never quote values, because they may contain credentials.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    unavailable: ClassVar[Mapping[str, frozenset[str]]] = {}
    elsewhere: ClassVar[Mapping[str, str]] = {}
    synonyms: ClassVar[Mapping[str, str]] = {}
    secret: ClassVar[bool] = False


class PayloadDocument(Document):
    """Base of the payloads of all kinds of jobs but python.

    Attributes:
        purpose: describes the payload in the error about a missing one.
    """

    secret: ClassVar[bool] = True
    purpose: ClassVar[str]

    def request(self) -> Mapping[str, object]:
        """Return the payload with all defaults filled in, as workers read it."""
        raise NotImplementedError


def wrong(message: str, expected: str = "") -> PydanticCustomError:
    """Create a validator's error with a final message; `expected` replaces the text of the field."""
    context: dict[str, Any] = {"expected_text": expected} if expected else {}
    return PydanticCustomError("not_right", message.replace("{", "(").replace("}", ")"), context)


def _only_visible(text: str) -> str:
    if problem := invisible_character(text):
        raise wrong(problem, "characters that can be seen")
    return text


VISIBLE: Final = AfterValidator(_only_visible)
"""Refuses a new name that looks like another because of characters that are not seen."""


def without_secrets(expected: str) -> AfterValidator:
    """Create a validator that refuses references to secrets in a value that other users can read."""

    def check(value: Any) -> Any:
        if has_references(value):
            raise wrong("contains a reference to a secret that other users could read", expected)
        return value

    return AfterValidator(check)


def field_errors(
    error: ValidationError, model: type[Document], base: tuple[str | int, ...] = (), given: object = None
) -> list[FieldError]:
    """Translate each error of a failed validation of `model`.

    Args:
        error: the exception of the validation.
        model: the model that was validated.
        base: path of the value in the document.
        given: the value as the client wrote it. If a client wrote one item instead of a list of one,
            pointers lead to that item.
    """
    return [field_error({**details}, model, base, given) for details in error.errors(include_url=False)]


def unknown_field(name: str, model: type[Document], path: tuple[str | int, ...]) -> FieldError:
    """Return the error about a field that the model does not have."""
    if name in model.unavailable and not model.unavailable[name]:
        return FieldError(pointer(path), NOT_AVAILABLE, "no such field")
    known = [field.alias or name for name, field in model.model_fields.items()]
    message = f"unknown field{suggestion(name, known, model.synonyms)}"
    if name in model.elsewhere:
        return FieldError(pointer(path), message, f"the field inside {model.elsewhere[name]}")
    listed = known if len(known) <= MOST_LISTED else [*known[:FIRST_LISTED], "…"]
    return FieldError(pointer(path), message, "one of " + ", ".join(listed))


def field_error(
    details: Mapping[str, Any], model: type[Document], base: tuple[str | int, ...] = (), given: object = None
) -> FieldError:
    """Translate one error of a failed validation of `model`; see `field_errors`."""
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
    if not expected:
        expected = allowed_values(details["type"], context, field.metadata if field else ())
    quoted = f"the name {shown(value)}" if in_key else "the value" if owner.secret else shown(value)
    message = _message(details, value, quoted, context)
    return FieldError(pointer(path), message, str(context.get("expected_text", expected)))


def model_in(annotation: object) -> type[Document] | None:
    """Return the first document model that an annotation contains, at any depth."""
    if isinstance(annotation, type) and issubclass(annotation, Document):
        return annotation
    return next(filter(None, map(model_in, get_args(annotation))), None)


def _message(details: Mapping[str, Any], value: object, quoted: str, context: Mapping[str, Any]) -> str:
    kind = details["type"]
    if kind == "missing":
        return "is missing"
    if kind == "not_right":
        return str(details["msg"])
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
        if isinstance(part, int):
            continue
        found = owner.model_fields.get(str(part))
        if found is None:
            return owner, None
        field = found
    return owner, field


def _inner_model(field: FieldInfo) -> type[Document] | None:
    return model_in(field.annotation)


def _as_written(location: tuple[str | int, ...], given: object) -> Iterator[str | int]:
    """Drop the steps of a location that the client did not write, such as the list around a single item."""
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
