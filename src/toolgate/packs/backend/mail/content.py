"""What a mail says, read from `data` of whoever calls; every text is plain text."""

from dataclasses import dataclass
from typing import Any, cast

MAX_TEXT = 20_000
MAX_ITEMS = 100
MAX_CODE = 100
LINKS = ("https://", "http://", "mailto:")


class BadContent(ValueError):
    """`data` is not what a template can show; `field` says where, the message why."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class Button:
    """A link that stands out."""

    text: str
    url: str


@dataclass(frozen=True, slots=True)
class Item:
    """One line of an order."""

    name: str
    quantity: str
    price: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """All that templates show; a template leaves out what is not there."""

    title: str
    preheader: str
    paragraphs: tuple[str, ...] = ()
    button: Button | None = None
    discount_code: str = ""
    order_id: str = ""
    order_date: str = ""
    items: tuple[Item, ...] = ()
    totals: tuple[tuple[str, str], ...] = ()
    ratings: tuple[Button, ...] = ()
    """Of the template `feedback`."""


Record = dict[str, Any]


def read_content(data: Record | None, subject: str) -> Content:
    """The content of a mail; raises `BadContent`."""
    data = data or {}
    content = _record(data, "content", "data.content")
    order = _record(data, "order", "data.order")
    feedback = _record(data, "feedback", "data.feedback")
    paragraphs = _text(content, "message", "data.content").split("\n\n")
    rating_url = _url(feedback, "url", "data.feedback")
    return Content(
        title=_text(content, "title", "data.content") or subject,
        preheader=_text(data, "preheader", "data") or _text(content, "preheader", "data.content"),
        paragraphs=tuple(one.strip() for one in paragraphs if one.strip()),
        button=_button(content),
        discount_code=_code(content),
        order_id=_text(order, "id", "data.order"),
        order_date=_text(order, "date", "data.order"),
        items=_items(order),
        totals=_totals(order),
        ratings=_ratings(rating_url) if rating_url else (),
    )


def _code(content: Record) -> str:
    """Short: campaigns write it wherever a text says `{discount.code}`."""
    code = _text(content, "discountCode", "data.content")
    if len(code) > MAX_CODE:
        raise BadContent("data.content.discountCode", f"must have at most {MAX_CODE} characters")
    return code


def _button(content: Record) -> Button | None:
    button = _record(content, "button", "data.content.button")
    url = _url(button, "url", "data.content.button")
    return Button(_text(button, "text", "data.content.button") or url, url) if url else None


def _items(order: Record) -> tuple[Item, ...]:
    listed: Any = order.get("items") or []
    if not isinstance(listed, list):
        raise BadContent("data.order.items", "must be an array of objects")
    lines = cast("list[Any]", listed)
    if len(lines) > MAX_ITEMS:
        raise BadContent("data.order.items", f"must have at most {MAX_ITEMS} entries")
    items = list[Item]()
    for number, one in enumerate(lines):
        where = f"data.order.items[{number}]"
        if not isinstance(one, dict):
            raise BadContent(where, "must be an object {name, quantity, price}")
        line = cast("Record", one)
        items.append(
            Item(
                _text(line, "name", where),
                _text(line, "quantity", where) or "1",
                _amount(line, "price", where, order),
            )
        )
    return tuple(items)


def _totals(order: Record) -> tuple[tuple[str, str], ...]:
    names = (("subtotal", "Subtotal"), ("discount", "Discount"), ("tax", "Tax"), ("total", "Total"))
    return tuple(
        (word, _amount(order, name, "data.order", order))
        for name, word in names
        if order.get(name) is not None
    )


def _ratings(url: str) -> tuple[Button, ...]:
    joined = "&" if "?" in url else "?"
    return tuple(Button(str(one), f"{url}{joined}rating={one}") for one in range(1, 6))


def _amount(record: Record, name: str, where: str, order: Record) -> str:
    """A number with two decimals and the order's currency; a text stands as it is."""
    value = record.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:,.2f} {_text(order, 'currency', 'data.order').upper()}".strip()
    return _text(record, name, where)


def _record(data: Record, name: str, where: str) -> Record:
    value: Any = data.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadContent(where, "must be an object")
    return cast("Record", value)


def _text(record: Record, name: str, where: str) -> str:
    value: Any = record.get(name)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadContent(f"{where}.{name}", "must be a text")
    text = str(value)
    if len(text) > MAX_TEXT:
        raise BadContent(f"{where}.{name}", f"must have at most {MAX_TEXT} characters")
    return text.replace("\r\n", "\n").strip()


def _url(record: Record, name: str, where: str) -> str:
    url = _text(record, name, where)
    plain = url.isprintable() and not any(one in url for one in ' "<>')
    if url and not (plain and url.lower().startswith(LINKS)):
        raise BadContent(
            f"{where}.{name}", "must be a URL that begins with https://, http:// or mailto:"
        )
    return url
