"""A client's name is its own choice: it can be read, and cannot pass for something we say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.identity.oauth.client_names import MAX_SHOWN, shown_name


@pytest.mark.parametrize("name", ["Claude", "VS Code", "Café Łódź", "自動化ツール", "App (2.0)"])
def test_ordinary_names_are_shown_as_they_are(name: str) -> None:
    assert shown_name(name) == name


def test_a_long_name_is_cut() -> None:
    said = shown_name("toolgate: your session has expired. Paste the admin key again to renew it.")
    assert said.endswith("…")
    assert len(said) == MAX_SHOWN


@pytest.mark.parametrize(
    "name",
    [
        "https://help.example",
        "see www.help.example",
        "mail help@toolgate.example",
        "\u3164",
        "\u202e",
    ],
)
def test_addresses_and_blanks_are_no_names(name: str) -> None:
    assert shown_name(name) == ""


def test_marks_do_not_pile_up() -> None:
    assert len(shown_name("Claude" + "\u0336" * 120)) <= len("Claude") + 2


@given(st.text())
def test_whatever_is_shown_is_one_short_printable_line(name: str) -> None:
    said = shown_name(name)
    assert len(said) <= MAX_SHOWN
    assert said.isprintable()
    assert said == said.strip()
