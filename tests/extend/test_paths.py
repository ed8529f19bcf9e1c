"""Whatever a caller sends, it stays inside its own segment of the route's path."""

from urllib.parse import unquote, urlsplit

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import effort

from toolgate.extend.routes import Address, address_of
from toolgate.gate.errors import InvalidArguments

BASE = "https://api.example:8443/v1"
NASTY = st.sampled_from(
    [".", "..", "/", "\\", "?", "#", "%", "%2e", "%2F", ";", "@", ":", "a", " "]
)
VALUES = st.one_of(
    st.text(max_size=12),
    st.lists(NASTY, min_size=1, max_size=5).map("".join),
    st.integers(),
    st.floats(),
)
TEMPLATES = st.sampled_from(
    ["items/{a}/parts", "{a}", "x/{a}{b}/y", "x/{a}.json", "x/.{a}/y", "x/{a}/{b}", "x/a:{a}@{b}"]
)


@given(template=TEMPLATES, a=VALUES, b=VALUES)
@settings(max_examples=effort(300, 1500))
def test_a_value_never_leaves_its_segment(template: str, a: object, b: object) -> None:
    address = address_of(template, BASE)
    try:
        url = address.url_for({"a": a, "b": b})
    except InvalidArguments:
        return
    asked = httpx2.URL(url)  # as the client sends it, dot segments taken away
    assert (asked.scheme, asked.host, asked.port) == ("https", "api.example", 8443)
    assert not asked.query
    assert not asked.fragment
    assert asked.raw_path.decode() == urlsplit(url).path
    # Also for a backend that decodes before it takes the path apart.
    segments = unquote(asked.raw_path.decode(), errors="strict").split("/")
    shape = f"/v1/{template}".split("/")
    assert len(segments) == len(shape)
    for segment, wanted in zip(segments, shape, strict=True):
        assert segment not in (".", "..")
        assert "\\" not in segment
        if "{" not in wanted:
            assert segment == wanted


@pytest.mark.parametrize(
    "value",
    ["..", ".", "", "a/b", "../x", "a\\b", "a\nb", "\ud800", None, True, [], [[1]], {"a": 1}],
)
def test_what_is_no_part_of_a_path_is_refused(value: object) -> None:
    with pytest.raises(InvalidArguments) as refused:
        address_of("items/{id}", BASE).url_for({"id": value})
    assert refused.value.problems[0].field == "id"
    assert refused.value.message.startswith("id must be ")


def test_two_values_cannot_make_a_dot_segment_together() -> None:
    with pytest.raises(InvalidArguments):
        address_of("x/{a}{b}/y", BASE).url_for({"a": ".", "b": "."})


API = "https://api.example"


@pytest.mark.parametrize(
    ("path", "base", "root", "there", "trusted"),
    [
        ("sponsorship", API, API, "/sponsorship", True),
        ("/a", f"{API}/v1/", f"{API}/v1", "/a", True),
        (f"{API}/b", API, API, "/b", True),
        (f"{API}:443/b", "https://API.example/v1", f"{API}:443", "/b", True),
        ("http://api.example/b", API, "http://api.example", "/b", False),
        (f"{API}:1/b", API, f"{API}:1", "/b", False),
        (f"{API}.evil/b", API, f"{API}.evil", "/b", False),
        ("https://other.example/b", None, "https://other.example", "/b", False),
    ],
)
def test_only_the_backends_own_origin_is_trusted(
    path: str, base: str | None, root: str, there: str, trusted: bool
) -> None:
    assert address_of(path, base) == Address(root, there, trusted)
