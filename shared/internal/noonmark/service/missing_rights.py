"""What to do when Postgres refuses a service because its user lacks a right."""

from __future__ import annotations

import re
from typing import Final

import psycopg

from noonmark.store.access.service_rights import SERVICES, TABLES, role_of, table_rights

_OBJECT: Final = re.compile(r'permission denied for \w+ "?(\w+)"?')


def explain(service: str, error: psycopg.errors.InsufficientPrivilege) -> str:
    """Return a sentence about a refused statement: on what, which rights are needed, how to get them."""
    lines = str(error).strip().splitlines() or ["permission denied"]
    found = _OBJECT.search(lines[0])
    table = found[1] if found and found[1] in TABLES else None
    remedy = f"the {service} must connect as the owner of the tables"
    if service in SERVICES:
        verbs = ", ".join(table_rights(service, table)) if table else ""
        needs = f"the {service} needs {verbs or 'nothing'} on {table}: " if table else ""
        remedy = (
            f"{needs}make its user a member of {role_of(service)}, and run `noonmark db migrate` as the owner"
            " of the tables; `noonmark rights postgres` shows all grants"
        )
    return f"Postgres refuses a statement: {lines[0]}; {remedy}"
