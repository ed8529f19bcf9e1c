"""Settings that are lists, given in the environment."""

from pathlib import Path

import pytest

from toolgate.settings import BadSettings, read_settings


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('["a.example", "b.example"]', ("a.example", "b.example")),
        (' ["a.example"]', ("a.example",)),
        ("[]", ()),
        ("[::1], b.example", ("[::1]", "b.example")),
    ],
)
def test_a_list_in_the_environment_may_be_json(text: str, names: tuple[str, ...]) -> None:
    variables = {"TOOLGATE_SERVER__ALLOWED_HOSTS": text}
    assert read_settings(environment=variables).server.allowed_hosts == names
    paths = read_settings(environment={"TOOLGATE_EXTEND__TOOLS": '["a.py", "b.yaml"]'})
    assert paths.extend.tools == (Path("a.py"), Path("b.yaml"))


def test_a_wrong_item_of_a_json_list_is_told_with_its_rule() -> None:
    with pytest.raises(BadSettings, match="must be a list of texts, or one text with commas"):
        read_settings(environment={"TOOLGATE_SERVER__ALLOWED_HOSTS": "[5]"})
