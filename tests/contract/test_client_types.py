"""The static types of the client are those of the API's models."""

from pathlib import Path

from noonmark.schemas.client_types import pages

FOLDER = Path(__file__).parents[2] / "shared" / "sdk" / "noonmark" / "client" / "types"


def test_they_are_made_from_the_models_as_they_are() -> None:
    """Where this fails: `python -m noonmark.schemas.client_types shared/sdk/noonmark/client/types`."""
    wanted = {f"{name}.py": text for name, text in pages().items()}
    found = {file.name: file.read_text() for file in FOLDER.glob("*.py") if file.name != "__init__.py"}
    assert found == wanted
