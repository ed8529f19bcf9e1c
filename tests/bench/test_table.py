"""The table: a bound that is missed cannot be overlooked."""

import pytest
from bench import report, table
from bench.jobs import Measured
from bench.racing import better


def measured(cpu=100.0, per_second=1000.0, p50=1.0, p99=2.0, beside=0.0):
    return Measured(
        calls=1, per_second=per_second, cpu=cpu, p50=p50, p99=p99, own_cpu=1, beside=beside
    )


@pytest.mark.parametrize(
    ("ours", "other", "told"), [(190, 100, "ok"), (200, 100, "ok"), (201, 100, "OVER")]
)
def test_a_bound_at_most(ours, other, told):
    book = table.Book()
    book.cpu("echo", measured(cpu=ours), measured(cpu=other), 2)
    assert book.checks[0].cells[-2:] == ["≤ 2", told]


@pytest.mark.parametrize(("ours", "other", "told"), [(160, 100, "ok"), (159, 100, "UNDER")])
def test_a_bound_at_least(ours, other, told):
    book = table.Book()
    book.speed("workers", measured(per_second=ours), measured(per_second=other), 1.6)
    assert book.checks[0].cells[-2:] == ["≥ 1.6", told]


def test_the_page_shows_what_is_missed_and_who_was_skipped():
    book = table.Book(skipped=["FastMCP: no network"])
    book.note("echo", {"toolgate": measured(), "SDK": measured(cpu=400)})
    book.cpu("CPU / bare handler", measured(cpu=301), measured(cpu=100), 2)
    book.times("p99 / p50", 9, 1, 10)
    page = report.page(book, {"Date": "today"}, tools=100, rounds=3, spread="many")
    assert "| CPU / bare handler | 301 µs / 100 µs | 3.01 | ≤ 2 | **OVER** |" in page
    assert "| p99 / p50 | 9 µs / 1 µs | 9.00 | ≤ 10 | ok |" in page
    assert "1 of 2 hold in this run." in page
    assert "- Skipped: FastMCP: no network" in page
    shown = report.printed(book, {"Date": "today"})
    assert "OVER" in shown
    assert "Skipped: FastMCP: no network" in shown


def test_the_cpu_of_a_database_server_has_a_column_of_its_own():
    assert table.figure_cells("get", "with", measured(cpu=90, beside=40))[2:4] == ["90 µs", "40 µs"]
    assert table.figure_cells("get", "without", measured(cpu=90))[2:4] == ["90 µs", ""]


def test_the_best_of_two_rounds_is_the_best_of_each_figure():
    best = better(measured(cpu=90, per_second=900), measured(cpu=95, per_second=1100, p99=1.5))
    assert (best.cpu, best.per_second, best.p50, best.p99) == (90, 1100, 1, 1.5)


def test_the_page_tells_no_addresses_of_this_machine():
    book = table.Book(skipped=["Toolbox: npm ci: GET https://registry.invalid/x 404 in /home/me/x"])
    page = report.page(book, {}, tools=100, rounds=3, spread="many")
    assert "- Skipped: Toolbox: npm ci: GET … 404 in …" in page
