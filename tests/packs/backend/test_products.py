"""What is sold: the built-in products, and a file of one's own."""

from decimal import Decimal
from pathlib import Path

import pytest

from toolgate.packs.backend.products import read_products
from toolgate.setting_types import BadSettings


def test_the_built_in_products_are_those_of_the_demo() -> None:
    products = read_products(None)
    assert list(products.by_id) == ["basic", "premium", "ultimate", "credits-100"]
    limits = {one.id: one.limits.get("requests") for one in products.by_id.values()}
    assert limits == {"basic": 100, "premium": 1000, "ultimate": 10000, "credits-100": None}
    premium, credit = products.by_id["premium"], products.by_id["credits-100"]
    assert premium.prices == {"monthly": Decimal("4.99"), "annually": Decimal("49.99")}
    assert (premium.trial_days, premium.currency, premium.type) == (14, "USD", "subscription")
    assert (credit.type, credit.prices) == ("one-time", {"once": Decimal("9.99")})
    assert products.default.id == "basic"
    assert products.default.free
    assert products.find("premium") is premium
    assert products.find("gold") is products.find(5) is products.find(None) is None


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "products.toml"
    file.write_text('[products.gold]\nname = "Gold"\nprices = { weekly = 2 }\ncurrency = "EUR"\n')
    assert read_products(file).default.prices == {"weekly": Decimal(2)}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "products"),
        ("[products]", "products"),
        ("[products.a", "TOML"),
        ("[products.'A B']\nname='x'", "A B"),
        ("[products.a]\nname=''", "products.a.name"),
        ("[products.a]\nname='x'\nprice=1", "products.a.price"),
        ("[products.a]\nname='x'\nprices={monthly=-1}", "products.a.prices.monthly"),
        ("[products.a]\nname='x'\nprices={monthly=1.5e300}", "products.a.prices.monthly"),
        ("[products.a]\nname='x'\nprices={hourly=1}", "hourly"),
        ("[products.a]\nname='x'\nlimits={requests=-1}", "products.a.limits.requests"),
        ("[products.a]\nname='x'\ncurrency='euro'", "products.a.currency"),
    ],
)
def test_what_is_wrong_in_a_file_is_told(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "products.toml"
    file.write_text(text)
    with pytest.raises(BadSettings, match=r"Setting backend\.products") as problem:
        read_products(file)
    assert told in str(problem.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="there is no such file"):
        read_products(tmp_path / "none.toml")
    (tmp_path / "latin").write_bytes(b"\xff")
    with pytest.raises(BadSettings, match="UTF-8"):
        read_products(tmp_path / "latin")
