"""Lists the routes of an application, independent of how FastAPI stores them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute


def routes_of(app: FastAPI) -> Iterator[tuple[tuple[str, str], APIRoute]]:
    """Yield every route as ((method, path), route), including those that are not in the OpenAPI document."""
    for route in _flat(app.routes):
        for method in sorted(route.methods or ()):
            yield (method, route.path_format), route


def methods_of(app: FastAPI, path: str) -> set[str]:
    """Return the methods that a path supports, over all of its routes; empty if there is no such path."""
    methods = {method for (method, _), route in routes_of(app) if route.path_regex.match(path)}
    # Served for every path, outside of its routes.
    return methods | {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set()) if methods else methods


def _flat(routes: Iterable[BaseRoute]) -> Iterator[APIRoute]:
    for route in routes:
        if isinstance(route, APIRoute):
            yield route
        # FastAPI keeps an included router as one entry of the list.
        elif (router := getattr(route, "original_router", None)) is not None:
            yield from _flat(router.routes)
