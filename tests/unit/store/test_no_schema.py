"""What is said of a database without a schema."""

from noonmark.store.migrations.migrate import SchemaStatus
from noonmark.store.migrations.revisions import SchemaRevision


def test_a_database_without_a_schema_is_said_to_have_none_with_the_command_that_makes_it():
    status = SchemaStatus(170000, SchemaRevision(None, None), None, None, "2026a", None)
    (problem,) = status.problems
    assert problem.startswith("the database has no schema")
    assert "run `noonmark db migrate`" in problem
