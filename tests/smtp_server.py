"""A real SMTP server (aiosmtpd) whose answers a test chooses, and what it has received."""

import asyncio
import email
import email.policy
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult

Answer = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Received:
    """One mail, as the server took it."""

    sender: str
    recipients: list[str]
    content: bytes

    @property
    def message(self) -> EmailMessage:
        parsed = email.message_from_bytes(self.content, policy=email.policy.default)
        assert isinstance(parsed, EmailMessage)
        return parsed

    def part(self, kind: str) -> str:
        """Its text, `plain` or `html`."""
        found = self.message.get_body((kind,))
        assert found is not None
        return found.get_content()


@dataclass
class Inbox:
    """What a server has received, and what it answers."""

    port: int = 0
    mails: list[Received] = field(default_factory=list)
    connections: int = 0
    of_recipient: dict[str, str] = field(default_factory=dict)
    """Answers to RCPT."""
    of_data: list[str] = field(default_factory=list)
    """Answers to the next mails; `drop` closes the connection, `silent` never answers."""
    took: Callable[[], None] = lambda: None
    """Called once a mail is taken, before that is said."""

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}"

    @property
    def everyone(self) -> list[str]:
        """Who got a mail, once for each."""
        return sorted(one for mail in self.mails for one in mail.recipients)


class _Handler:
    def __init__(self, inbox: Inbox) -> None:
        self.inbox = inbox

    async def handle_EHLO(
        self, server: SMTP, session: Any, envelope: Any, hostname: str, responses: list[str]
    ) -> list[str]:
        self.inbox.connections += 1
        session.host_name = hostname
        return responses

    async def handle_RCPT(
        self, server: SMTP, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        if answer := self.inbox.of_recipient.get(address):
            return answer
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Any, envelope: Any) -> str:
        answer = self.inbox.of_data.pop(0) if self.inbox.of_data else "250 taken"
        if answer == "drop":
            server.transport.close()
            return "451 gone"
        if answer == "silent":
            await asyncio.Event().wait()
        if answer.startswith("250"):
            mail = Received(envelope.mail_from, list(envelope.rcpt_tos), envelope.content)
            self.inbox.mails.append(mail)
            self.inbox.took()
        return answer


@contextmanager
def smtp_server(
    *,
    tls: ssl.SSLContext | None = None,
    login: tuple[str, str] | None = None,
    implicit_tls: bool = False,
) -> Iterator[Inbox]:
    """A server on this machine; with `tls` it wants STARTTLS, with `login` a user and password."""

    def allow(server: SMTP, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        given = (data.login.decode(), data.password.decode())
        return AuthResult(success=given == login, handled=False)

    inbox = Inbox()
    more: dict[str, Any] = {"authenticator": allow, "auth_required": True} if login else {}
    if tls and not implicit_tls:
        more |= {"tls_context": tls, "require_starttls": True}
    elif login:
        more["auth_require_tls"] = False
    loop = asyncio.new_event_loop()

    def connection() -> SMTP:
        return SMTP(_Handler(inbox), hostname="test", loop=loop, timeout=600, **more)

    listening = loop.create_server(connection, "127.0.0.1", 0, ssl=tls if implicit_tls else None)
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(listening, loop).result()
    inbox.port = server.sockets[0].getsockname()[1]
    try:
        yield inbox
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end(server: asyncio.Server) -> None:
    server.close()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
