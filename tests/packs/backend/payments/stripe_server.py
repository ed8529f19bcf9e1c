"""A Stripe server for tests: the part of the real API that we use, form-encoded, with state.

It keeps idempotency keys as Stripe does (same key and same request: the first answer again; same
key and another request: 400), never refunds more than was paid, and signs its events. `failures`
says how the next requests to a path fail. `requests` is what it was asked, in order.
"""

import hashlib
import hmac
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

KEY, SECRET = "sk_test_ours", "whsec_ours"
MONTH = 30 * 86_400
Json = dict[str, Any]


class Refused(Exception):
    """An error as Stripe tells it."""

    def __init__(self, status: int, message: str, code: str, kind: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.body = {
            "error": {
                "type": kind or "invalid_request_error",
                "message": message,
                "code": code,
            }
        }


def missing(kind: str, id: str) -> Refused:
    return Refused(404, f"No such {kind}: '{id}'", "resource_missing")


@dataclass
class Asked:
    """One request."""

    method: str
    path: str
    form: Json
    key: str | None


def nested(pairs: list[tuple[str, str]]) -> Json:
    """The form that Stripe's clients send: `a[b]=1` is `{"a": {"b": "1"}}`."""
    form: Json = {}
    for name, value in pairs:
        *parents, last = name.replace("]", "").split("[")
        inner = form
        for one in parents:
            inner = inner.setdefault(one, {})
        inner[last] = value
    return form


@dataclass
class StripeServer:
    """The state of an account at Stripe."""

    objects: dict[str, dict[str, Json]] = field(default_factory=dict)
    requests: list[Asked] = field(default_factory=list)
    failures: dict[str, list[Any]] = field(default_factory=dict)
    """By method and path, as in `POST /v1/refunds`: a status, `dead`, `garbage`, or seconds."""
    after: Callable[[Asked], None] | None = None
    """Called when a request has had its effect, before it is answered."""
    url: str = ""

    def __post_init__(self) -> None:
        self._ids = itertools.count(1)
        self._keys: dict[str, tuple[Any, tuple[int, Json]]] = {}
        self.lock = threading.RLock()

    def forget_keys(self) -> None:
        """As Stripe does after a day."""
        self._keys.clear()

    def put(self, kind: str, prefix: str, **fields: Any) -> Json:
        """Store an object."""
        made = {"id": f"{prefix}_{next(self._ids)}", "object": kind, **fields}
        made.setdefault("created", int(time.time()))
        self.objects.setdefault(kind, {})[made["id"]] = made
        return made

    def get(self, kind: str, id: str) -> Json:
        try:
            return self.objects[kind][id]
        except KeyError:
            raise missing(kind.replace("_", " "), id) from None

    def subscribe(
        self,
        uid: str | None = None,
        *,
        amount: int = 499,
        currency: str = "usd",
        paid_days_ago: float = 3,
        product: str = "premium",
        trial: bool = False,
        status: str = "active",
    ) -> Json:
        """A customer who subscribes, and the payment for it."""
        customer = self.put("customer", "cus", email="a@example.com")["id"]
        paid = int(time.time() - paid_days_ago * 86_400)
        price = {
            "id": f"price_{product}",
            "object": "price",
            "unit_amount": amount,
            "currency": currency,
            "product": product,
            "recurring": {"interval": "month", "interval_count": 1},
        }
        item = {
            "id": "si_1",
            "object": "subscription_item",
            "price": price,
            "current_period_start": paid,
            "current_period_end": paid + MONTH,
        }
        made = self.put(
            "subscription",
            "sub",
            customer=customer,
            status="trialing" if trial else status,
            items={"object": "list", "data": [item], "has_more": False, "url": "/v1/x"},
            cancel_at_period_end=False,
            cancel_at=None,
            canceled_at=None,
            ended_at=None,
            start_date=paid,
            trial_start=paid if trial else None,
            trial_end=paid + 14 * 86_400 if trial else None,
            metadata={"uid": uid} if uid else {},
            latest_invoice=None,
        )
        if not trial:
            self.pay(made, paid)
        return made

    def pay(self, subscription: Json, paid: int) -> Json:
        """A payment that went through: invoice, payment intent, charge."""
        price = subscription["items"]["data"][0]["price"]
        charge = self.put(
            "charge",
            "ch",
            created=paid,
            amount=price["unit_amount"],
            amount_refunded=0,
            currency=price["currency"],
            customer=subscription["customer"],
            status="succeeded",
            refunded=False,
        )
        intent = self.put("payment_intent", "pi", latest_charge=charge["id"], status="succeeded")
        charge["payment_intent"] = intent["id"]
        details = {"subscription": subscription["id"]}
        invoice = self.put(
            "invoice",
            "in",
            created=paid,
            status="paid",
            amount_paid=price["unit_amount"],
            parent={"type": "subscription_details", "subscription_details": details},
        )
        payment = {"type": "payment_intent", "payment_intent": intent["id"]}
        self.put("invoice_payment", "inpay", invoice=invoice["id"], status="paid", payment=payment)
        subscription["latest_invoice"] = invoice["id"]
        return charge

    # The API

    def answer(self, asked: Asked) -> tuple[int, Json]:
        """Do what is asked, once for each idempotency key."""
        with self.lock:
            self.requests.append(asked)
            same = (asked.method, asked.path, json.dumps(asked.form, sort_keys=True))
            if asked.key and asked.method == "POST" and asked.key in self._keys:
                first, answer = self._keys[asked.key]
                if first != same:
                    told = "Keys for idempotent requests can only be used with the same parameters"
                    return 400, Refused(400, told, "", "idempotency_error").body
                return answer
            try:
                answer = 200, self._do(asked)
            except Refused as refused:
                answer = refused.status, refused.body
            if asked.key and asked.method == "POST":
                self._keys[asked.key] = same, json.loads(json.dumps(answer))
        if self.after is not None:
            self.after(asked)
        return answer

    def _do(self, asked: Asked) -> Json:
        form = asked.form
        match (asked.method, *asked.path.removeprefix("/v1/").split("/")):
            case "GET", "subscriptions", id:
                return self.get("subscription", id)
            case "POST", "subscriptions", id:
                return self._cancel_later(self.get("subscription", id), form)
            case "DELETE", "subscriptions", id:
                return self.end(self.get("subscription", id))
            case "GET", "invoices":
                wanted = form["subscription"]
                return self._list("invoice", lambda one: self._is_for(one, wanted))
            case "GET", "invoices", id:
                return self.get("invoice", id)
            case "GET", "invoice_payments":
                return self._list("invoice_payment", lambda one: _is_payment(one, form))
            case "GET", "payment_intents", id:
                return self.get("payment_intent", id)
            case "GET", "charges", id:
                return self.get("charge", id)
            case "GET", "refunds":
                return self._list("refund", lambda one: one["charge"] == form["charge"])
            case "POST", "refunds":
                return self._refund(form)
            case "POST", "billing_portal", "sessions":
                return self._portal(form)
            case "GET", "balance":
                return {"object": "balance", "livemode": False, "available": [], "pending": []}
            case _:
                raise Refused(404, f"Unrecognized request URL ({asked.path})", "")

    def _list(self, kind: str, fits: Callable[[Json], bool]) -> Json:
        every = [one for one in self.objects.get(kind, {}).values() if fits(one)]
        newest = sorted(every, key=lambda one: one["created"], reverse=True)
        return {"object": "list", "url": f"/v1/{kind}s", "has_more": False, "data": newest}

    def _is_for(self, invoice: Json, subscription: str) -> bool:
        return invoice["parent"]["subscription_details"]["subscription"] == subscription

    def _cancel_later(self, subscription: Json, form: Json) -> Json:
        if subscription["status"] == "canceled":
            raise Refused(400, "A canceled subscription can only update its metadata", "")
        if subscription["status"] == "unpaid":
            raise Refused(400, "This subscription cannot be updated without a payment", "")
        if form["cancel_at_period_end"] == "true":
            subscription["cancel_at_period_end"] = True
            subscription["canceled_at"] = int(time.time())
            item = subscription["items"]["data"][0]
            subscription["cancel_at"] = item["current_period_end"]
        return subscription

    def end(self, subscription: Json) -> Json:
        """End a subscription now."""
        if subscription["status"] == "canceled":
            raise missing("subscription", subscription["id"])
        now = int(time.time())
        subscription |= {"status": "canceled", "canceled_at": now, "ended_at": now}
        return subscription

    def _refund(self, form: Json) -> Json:
        charge = self.get("charge", form["charge"])
        left, amount = charge["amount"] - charge["amount_refunded"], int(form["amount"])
        if left == 0:
            told = f"Charge {charge['id']} has already been refunded."
            raise Refused(400, told, "charge_already_refunded")
        if amount > left:
            told = f"Refund amount ({amount}) is greater than unrefunded amount on charge ({left})"
            raise Refused(400, told, "")
        charge["amount_refunded"] += amount
        return self.put(
            "refund",
            "re",
            charge=charge["id"],
            amount=amount,
            currency=charge["currency"],
            status="succeeded",
            reason=form.get("reason"),
            metadata=form.get("metadata", {}),
        )

    def _portal(self, form: Json) -> Json:
        customer = self.get("customer", form["customer"])["id"]
        made = self.put("billing_portal.session", "bps", customer=customer)
        made["return_url"] = form.get("return_url")
        made["url"] = f"https://billing.stripe.example/p/session/{made['id']}"
        return made

    # Events

    def event(self, kind: str, about: Json, *, created: int | None = None) -> bytes:
        """An event about an object as it is now."""
        made = self.put(
            "event",
            "evt",
            type=kind,
            data={"object": json.loads(json.dumps(about))},
            created=created or int(time.time()),
            livemode=False,
        )
        return json.dumps(made).encode()

    def asked(self, method: str, path: str = "/v1/") -> list[Asked]:
        """The requests of a kind so far."""
        return [one for one in self.requests if one.method == method and path in one.path]


def _is_payment(one: Json, form: Json) -> bool:
    if "invoice" in form:
        return one["invoice"] == form["invoice"]
    return one["payment"]["payment_intent"] == form["payment"]["payment_intent"]


def signature(body: bytes, secret: str = SECRET, at: int | None = None) -> str:
    """The header that Stripe sends with an event."""
    stamp = int(time.time()) if at is None else at
    signed = hmac.new(secret.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={stamp},v1={signed},v0=old"


@contextmanager
def stripe_server() -> Iterator[StripeServer]:
    """A server on a free port of loopback."""
    state = StripeServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
            pairs = parse_qsl(parts.query or body, keep_blank_values=True)
            key = self.headers.get("idempotency-key")
            asked = Asked(self.command, parts.path, nested(pairs), key)
            failing = state.failures.get(f"{asked.method} {asked.path}")
            failure = failing.pop(0) if failing else None
            if failure == "dead":
                state.requests.append(asked)
                self.close_connection = True
                return None
            if isinstance(failure, float):
                time.sleep(failure)
            if self.headers.get("authorization") != f"Bearer {KEY}":
                return self.send(401, Refused(401, "Invalid API Key provided", "").body)
            if isinstance(failure, int) and not isinstance(failure, bool):
                state.requests.append(asked)
                kind = "card_error" if failure == 402 else "api_error"
                return self.send(failure, Refused(failure, "It failed.", "", kind).body)
            if failure == "garbage":
                state.requests.append(asked)
                return self.send(200, b"<html>not json" * 100)
            status, answer = state.answer(asked)
            if failure == "lost":
                self.close_connection = True
                return None
            return self.send(status, answer)

        do_GET = do_POST = do_DELETE = do

        def send(self, status: int, body: Json | bytes) -> None:
            raw = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(raw)))
            self.send_header("request-id", "req_1")
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
