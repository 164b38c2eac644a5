"""The tables that reads are written with are those that the migrations make."""

from sqlalchemy import MetaData
from sqlalchemy.dialects.postgresql import dialect

from noonmark.store.database.engines import engine_of
from noonmark.store.tables import tables


def describe(metadata: MetaData) -> dict[str, dict[str, tuple[str, bool, bool]]]:
    """Per table and column: type as Postgres spells it, whether it may be null, whether it is part of the key."""
    spoken = dialect()
    return {
        table.name: {
            column.name: (column.type.compile(spoken), bool(column.nullable), column.primary_key)
            for column in table.columns
        }
        for table in metadata.tables.values()
    }


def test_the_tables_in_code_are_those_of_the_migrations(database_url):
    engine = engine_of(database_url, application="test")
    found = MetaData()
    found.reflect(engine, only=lambda name, _: name != "alembic_version" and not name.startswith("runs_"))
    engine.dispose()

    made, written = describe(found), describe(tables.metadata)

    assert sorted(made) == sorted(written)
    for name in made:
        assert made[name] == written[name], f"table {name} differs"
