"""docs/settings.md is what the settings say of themselves."""

from tests.unit.docs.pages import DOCS

from noonmark.settings import PREFIX, Settings
from noonmark.settings import page as settings_page


def test_the_settings_page_is_what_the_module_prints():
    page = (DOCS / "settings.md").read_text(encoding="utf-8")
    assert page == settings_page.page(), "run: python -m noonmark.settings > docs/settings.md"


def test_every_setting_says_what_it_means_in_a_sentence():
    for name, info in Settings.model_fields.items():
        assert info.description, name
        assert info.description.endswith("."), name


def test_the_page_shows_each_setting_once_with_its_default_and_its_limits():
    page = settings_page.page()
    for name in Settings.model_fields:
        assert page.count(f"| `{PREFIX}{name.upper()}` |") == 1, name
    assert "| `NOONMARK_LEASE_SECONDS` | `15` | from 2 to 3600 |" in page
    assert "| `NOONMARK_WORKER_LOW_SHARE` | `0.05` | above 0 to 0.25 |" in page
    assert "| `NOONMARK_LOG_FORMAT` | `json` | `json`, `console` |" in page
    assert "| `NOONMARK_HANDLERS` | none | a list with commas |" in page


def test_every_heading_of_the_page_stands_before_a_setting_that_exists():
    assert set(settings_page._SECTIONS) <= set(Settings.model_fields)
    assert next(iter(settings_page._SECTIONS)) == next(iter(Settings.model_fields))
