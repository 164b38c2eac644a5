"""What is expected is read from the constraints of a field that has no words of its own for it."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

import pytest
from pydantic import Field, ValidationError

from noonmark.schemas.problems.pydantic_errors import Document, Expected, field_errors


class Thing(Document):
    """A document with a field for each kind of constraint."""

    count: Annotated[int | None, Field(ge=1, le=9)] = None
    least: Annotated[int | None, Field(ge=1)] = None
    share: Annotated[float | None, Field(gt=0, lt=1)] = None
    colour: Literal["red", "blue"] | None = None
    name: Annotated[str | None, Field(min_length=1, max_length=3)] = None
    names: Annotated[list[str] | None, Field(min_length=1, max_length=2)] = None
    flag: bool = False
    id: Annotated[UUID | None, Field(strict=False)] = None
    said: Annotated[int, Field(ge=1), Expected("a number of things")] = 1


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"count": 10}, "/count: 10 is above 9; expected an integer from 1 to 9"),
        ({"count": "1"}, '/count: "1" is a string; expected an integer from 1 to 9'),
        ({"least": 0}, "/least: 0 is below 1; expected at least 1"),
        ({"share": 1.0}, "/share: 1.0 is not below 1; expected less than 1"),
        ({"colour": "green"}, '/colour: "green" is not allowed; expected red or blue'),
        ({"name": ""}, "/name: has fewer characters than 1; expected at least 1 character"),
        ({"name": 5}, "/name: 5 is an integer; expected a string"),
        ({"names": []}, "/names: has fewer entries than 1; expected at least 1 value"),
        ({"names": "x"}, '/names: "x" is a string; expected an array'),
        ({"flag": 1}, "/flag: 1 is an integer; expected true or false"),
        ({"id": "x"}, '/id: "x" is not allowed; expected a UUID'),
        ({"said": 0}, "/said: 0 is below 1; expected a number of things"),
    ],
)
def test_an_error_says_what_is_expected(document, problem):
    with pytest.raises(ValidationError) as failed:
        Thing.model_validate(document)
    assert [str(error) for error in field_errors(failed.value, Thing)] == [problem]


def test_a_document_that_is_no_object_says_so():
    with pytest.raises(ValidationError) as failed:
        Thing.model_validate([])
    assert [str(error) for error in field_errors(failed.value, Thing)] == [
        "document: is an array; expected an object"
    ]
