"""Minor units: what processors count in, and how many make one of a currency."""

from decimal import ROUND_HALF_UP, Decimal

NO_DECIMALS = frozenset(
    [
        *("bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga"),
        *("pyg", "rwf", "uyi", "vnd", "vuv", "xaf", "xof", "xpf"),
    ]
)
WHOLE_OF_HUNDREDTHS = frozenset(("isk", "ugx"))
"""Stripe counts these in hundredths, although ISO 4217 does not, and takes whole units only."""
THREE_DECIMALS = frozenset(["bhd", "iqd", "jod", "kwd", "lyd", "omr", "tnd"])
FOUR_DECIMALS = frozenset(("clf", "uyw"))
STEP_OF_THREE = 10
"""Processors take amounts with three decimals only where the last one is 0."""


def decimals(currency: str) -> int:
    """How many digits follow the point."""
    code = currency.lower()
    if code in NO_DECIMALS:
        return 0
    if code in THREE_DECIMALS:
        return 3
    return 4 if code in FOUR_DECIMALS else 2


def major(amount: int, currency: str) -> float:
    """An amount as people write it: 499 of `usd` is 4.99."""
    exact = Decimal(amount).scaleb(-decimals(currency))
    return int(exact) if exact == exact.to_integral_value() else float(exact)


def minor(price: float | str, currency: str) -> int:
    """The amount in minor units: 4.99 of `usd` is 499."""
    exact = Decimal(str(price)).scaleb(decimals(currency))
    return int(exact.to_integral_value(ROUND_HALF_UP))


def payable(amount: int, currency: str) -> int:
    """The largest amount, at most this one, that can be paid out."""
    if currency.lower() in WHOLE_OF_HUNDREDTHS:
        return amount - amount % 100
    return amount - amount % STEP_OF_THREE if decimals(currency) == 3 else amount


def written(amount: int, currency: str) -> str:
    """With its currency: `4.99 USD`."""
    digits = decimals(currency)
    return f"{Decimal(amount).scaleb(-digits):.{digits}f} {currency.upper()}"
