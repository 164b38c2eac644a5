"""What is said of invalid parameters."""

import asyncio
from enum import StrEnum
from typing import Annotated, Literal

import pytest
from fastapi import FastAPI, Query
from httpx import ASGITransport, AsyncClient

from noonmark.api.http.parameter_errors import query_error
from noonmark.api.http.problems import ProblemError, install
from noonmark.api.http.query_parameters import Since


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@pytest.fixture
def get():
    app = FastAPI()
    install(app)

    @app.middleware("http")
    async def number(request, following):
        request.scope["noonmark.request_id"] = "1"
        return await following(request)

    @app.get("/things")
    def things(
        limit: Annotated[int, Query(ge=1, le=200)] = 5,
        state: Annotated[list[Colour], Query()] = [],  # noqa: B006
        since: Since = None,
        kind: Colour | Literal["red", "none"] | None = None,
    ) -> int:
        return limit

    async def answer(path):
        async with AsyncClient(transport=ASGITransport(app), base_url="http://api") as client:
            return (await client.get(path)).json()

    return lambda path: asyncio.run(answer(path))


@pytest.mark.parametrize(
    ("query", "name", "expected"),
    [
        ("limit=0", "limit", "at least 1"),
        ("limit=201", "limit", "at most 200"),
        ("limit=many", "limit", "an integer"),
        ("state=foo", "state", "red or blue"),
        ("state=foo&state=red", "state", "red or blue"),
        ("kind=foo", "kind", "red, blue or none"),
        ("since=yesterday", "since", ""),
    ],
)
def test_an_error_names_the_parameter_and_what_is_expected(get, query, name, expected):
    answer = get(f"/things?{query}")
    (error,) = answer["errors"]
    assert answer["status"] == 400
    assert (error["pointer"], error["message"].partition(":")[0]) == ("", f"query parameter {name}")
    assert error["expected"]
    assert expected in error["expected"]
    assert answer["detail"] == f"{error['message']}; expected {error['expected']}"


def test_our_own_errors_of_parameters_are_listed_too():
    problem = ProblemError.of_parameter(query_error("label", "'x' is not a label", "key:value"))
    assert problem.detail == "query parameter label: 'x' is not a label; expected key:value"
    assert [error.expected for error in problem.errors] == ["key:value"]
