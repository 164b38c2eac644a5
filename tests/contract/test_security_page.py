"""docs/security.md says which role has which permission, and names only what there is."""

import re
from pathlib import Path

from noonmark.core.access.roles import ROLE_FOR, Permission, Principal, Role
from noonmark.settings import PREFIX, Settings

PAGE = (Path(__file__).parents[2] / "docs" / "security.md").read_text()


def rows() -> dict[str, str]:
    """Permission to least role, as the page has them."""
    return dict(re.findall(r"^\| `([\w:]+)` \| [^|]+ \| ([a-z ]+) \|$", PAGE, re.MULTILINE))


def test_every_permission_is_there_with_its_least_role():
    least = {permission.value: role.label for permission, role in ROLE_FOR.items()}

    assert rows() == {**least, Permission.PLATFORM.value: "platform admin only"}


def test_what_the_page_says_is_what_principals_may():
    for name, least in rows().items():
        for role in Role:
            allowed = least != "platform admin only" and role >= Role.named(least)
            assert Principal("x", "x", {"a": role}).may(Permission(name), "a") is allowed, (name, role)
            assert not Principal("x", "x", {"a": role}).may(Permission(name), "b")
        assert Principal("x", "x", platform=True).may(Permission(name), "anything")


def test_settings_that_the_page_names_exist():
    named = set(re.findall(rf"{PREFIX}([A-Z_]+)", PAGE))

    assert named
    assert {name.lower() for name in named} <= set(Settings.model_fields)
