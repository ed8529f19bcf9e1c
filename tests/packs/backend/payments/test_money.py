"""Minor units of currencies, and how much of a payment goes back."""

import pytest

from toolgate.packs.backend.payments.money import decimals, major, minor, payable, written
from toolgate.packs.backend.payments.periods import next_end
from toolgate.packs.backend.payments.processor import Payment, Subscription
from toolgate.packs.backend.payments.refund_amounts import amount_to_refund

DAY = 86_400


@pytest.mark.parametrize(
    ("price", "currency", "units", "text"),
    [
        (4.99, "usd", 499, "4.99 USD"),
        (19.99, "EUR", 1999, "19.99 EUR"),
        (1.1, "usd", 110, "1.10 USD"),
        (500, "jpy", 500, "500 JPY"),
        (1.5, "kwd", 1500, "1.500 KWD"),
        (0.07, "usd", 7, "0.07 USD"),
        (1000, "isk", 100000, "1000.00 ISK"),
        (7, "xof", 7, "7 XOF"),
        (5000, "krw", 5000, "5000 KRW"),
        (1.234, "bhd", 1234, "1.234 BHD"),
        (25000, "ugx", 2500000, "25000.00 UGX"),
    ],
)
def test_minor_units(price: float, currency: str, units: int, text: str) -> None:
    assert minor(price, currency) == units
    assert major(units, currency) == price
    assert written(units, currency) == text


@pytest.mark.parametrize(
    ("digits", "currencies"),
    [
        (0, "bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf"),
        (2, "usd eur gbp chf aud isk ugx huf twd"),
        (3, "bhd jod kwd omr tnd"),
    ],
)
def test_every_currency_that_stripe_counts_otherwise(digits: int, currencies: str) -> None:
    for currency in currencies.split():
        for written_so in (currency, currency.upper()):
            assert decimals(written_so) == digits
            for units in (0, 1, 7, 10, 99, 1230, 10**12 + 1):
                assert minor(major(units, written_so), written_so) == units


def test_whole_units_only_where_stripe_takes_no_others() -> None:
    assert [payable(1234, one) for one in ("isk", "UGX", "huf", "jpy")] == [1200, 1200, 1234, 1234]


def test_three_decimals_end_with_0() -> None:
    assert payable(1234, "kwd") == 1230
    assert payable(1234, "usd") == 1234


def _of(amount: int, refunded: int, currency: str, age: float) -> int:
    now = 1_800_000_000
    paid = int(now - age * DAY)
    payment = Payment(id="ch", amount=amount, refunded=refunded, currency=currency, paid_at=paid)
    subscription = Subscription(
        id="sub",
        status="active",
        started_at=paid,
        period_start=paid,
        period_end=paid + 30 * DAY,
    )
    return amount_to_refund(payment, subscription, now)


@pytest.mark.parametrize(
    ("amount", "refunded", "currency", "age", "wanted"),
    [
        (3000, 0, "usd", 7, 3000),
        (3000, 0, "usd", 10, 2000),
        (3000, 1500, "usd", 10, 1500),
        (3000, 3000, "usd", 1, 0),
        (3000, 0, "usd", 31, 0),
        (500, 0, "jpy", 10, 333),
        (1000, 0, "kwd", 10, 660),
        (1000, 0, "bhd", 10, 660),
        (500, 0, "krw", 10, 333),
        (100_000, 0, "isk", 10, 66_600),
        (100_000, 0, "ugx", 10, 66_600),
        (100_000, 50_000, "ugx", 10, 50_000),
    ],
)
def test_never_more_than_is_left(
    amount: int, refunded: int, currency: str, age: float, wanted: int
) -> None:
    assert _of(amount, refunded, currency, age) == wanted


def test_months_end_on_the_day_they_began() -> None:
    january = 1_738_324_800  # 2025-01-31
    february = next_end(january, "monthly", january)
    march = next_end(february, "monthly", january)
    assert [(one - january) // DAY for one in (february, march)] == [28, 59]
    assert (next_end(january, "annually", january) - january) // DAY == 365
    assert (next_end(january, "weekly", january) - january) // DAY == 7
