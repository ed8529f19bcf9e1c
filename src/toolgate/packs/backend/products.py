"""What is sold: products with their prices and limits, read from a file.

The first product is what a user has who bought nothing.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from toolgate.gate.arguments import problem_of
from toolgate.setting_types import BadSettings

SETTING = "backend.products"
Frequency = Literal["daily", "weekly", "monthly", "annually", "once"]
ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Product:
    """One product."""

    id: str
    name: str
    type: Literal["subscription", "one-time"]
    prices: Mapping[str, Decimal]
    """By frequency, in the currency's main unit; none for what is free."""
    currency: str
    """Three letters, in capitals."""
    trial_days: int
    limits: Mapping[str, int]
    """How often each metric may be used in a month; one that is not named has no limit."""
    processor_ids: Mapping[str, str]
    """What the payment processor calls the price of a frequency."""

    @property
    def free(self) -> bool:
        """Whether it costs nothing."""
        return not self.prices


@dataclass(frozen=True, slots=True)
class Products:
    """Those of one file, in its order."""

    by_id: Mapping[str, Product]

    @property
    def default(self) -> Product:
        """What a user has who bought nothing."""
        return next(iter(self.by_id.values()))

    def find(self, product_id: object) -> Product | None:
        """The product of this id."""
        return self.by_id.get(product_id) if isinstance(product_id, str) else None


def _price(value: object) -> object:
    """A number as it is written; a fraction in binary would not be what was meant."""
    try:
        return Decimal(value) if isinstance(value, str | int) else value
    except InvalidOperation:
        return value


def _check_id(value: str) -> str:
    if not ID.fullmatch(value):
        raise ValueError("not a-z, 0-9, _ and -")
    return value


Id = Annotated[str, AfterValidator(_check_id)]
Price = Annotated[Decimal, BeforeValidator(_price), Field(gt=0, max_digits=12, decimal_places=3)]
Text = Annotated[str, Field(min_length=1, max_length=200)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ProductTable(_Table):
    """A product as the file has it."""

    name: Text
    type: Literal["subscription", "one-time"] = "subscription"
    prices: dict[Frequency, Price] = {}
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")] = "USD"
    trial_days: int = Field(default=0, ge=0, le=730)
    limits: dict[Text, Annotated[int, Field(ge=0)]] = {}
    processor_ids: dict[Frequency, Text] = {}


class ProductsFile(_Table):
    """The whole file."""

    products: dict[Id, ProductTable] = Field(min_length=1)


def read_products(file: Path | None) -> Products:
    """The products of a team's own file, or the built-in ones; `BadSettings` says what is wrong."""
    if file is None:
        built_in = resources.files("toolgate.packs.backend") / "products.toml"
        return parse(built_in.read_text(encoding="utf-8"))
    try:
        return parse(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        problem = "there is no such file"
    except OSError as unreadable:
        problem = (unreadable.strerror or str(unreadable)).lower()
    except UnicodeDecodeError:
        problem = "it is not UTF-8 text; save it as UTF-8"
    except tomllib.TOMLDecodeError as unreadable:
        problem = f"it is not valid TOML: {unreadable}"
    except ValidationError as invalid:
        problem = problem_of(invalid)
    raise BadSettings(f"Setting {SETTING} ({file}): {problem}.")


def parse(text: str) -> Products:
    """The products of a file's text."""
    tables = ProductsFile.model_validate(tomllib.loads(text)).products
    return Products({id: _product(id, table) for id, table in tables.items()})


def _product(id: str, table: ProductTable) -> Product:
    prices: dict[str, Decimal] = {**table.prices}
    ids: dict[str, str] = {**table.processor_ids}
    return Product(
        id, table.name, table.type, prices, table.currency, table.trial_days, table.limits, ids
    )
