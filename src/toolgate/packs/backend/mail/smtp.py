"""SMTP with `aiosmtplib`: connections are kept open, and a mail goes to one recipient at a time.

One transaction a recipient, so that each has a link of its own to unsubscribe, and an outcome of
its own: a refusal of one says nothing about the others.
"""

import asyncio
import ssl
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiosmtplib import (
    SMTP,
    SMTPAuthenticationError,
    SMTPConnectError,
    SMTPConnectTimeoutError,
    SMTPDataError,
    SMTPException,
    SMTPResponseException,
    SMTPServerDisconnected,
    SMTPTimeoutError,
)

from toolgate.packs.backend.mail.message import Message, Recipient, is_large, mime_bytes
from toolgate.packs.backend.mail.port import (
    Delivery,
    HandingOver,
    MailUnavailable,
    Outcome,
    Settled,
    server_words,
)
from toolgate.packs.backend.mail.smtp_pool import Connection, NoTurn, Pool

CONNECT_SECONDS = 10.0
BUSY = "All mail.connections were in use for {:g} s: the mail was not handed over."
UNCONFIRMED = "was handed the mail and did not confirm it: it may have been taken"


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpServer:
    """Which server, and how it is spoken to."""

    host: str
    port: int
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: bool = False
    """TLS from the first byte (`smtps://`)."""
    starttls: bool = True
    """Required: without it nothing is sent."""
    ca_file: Path | None = None
    seconds: float = 20.0
    """How long the server may take for one answer."""

    @property
    def name(self) -> str:
        """Host and port, for sentences."""
        return f"{self.host}:{self.port}"


class SmtpMailer:
    """Sends over a few connections to one server."""

    provider = "smtp"
    holds = False
    delivers = True

    def __init__(self, server: SmtpServer, connections: int) -> None:
        self._server = server
        self._context: ssl.SSLContext | None = None
        self._pool = Pool(self._connect, connections, server.seconds)

    async def send(
        self,
        message: Message,
        recipients: Sequence[Recipient],
        settled: Settled | None = None,
        handing_over: HandingOver | None = None,
    ) -> Sequence[Delivery]:
        """Hand a message over for each recipient, one after the other."""
        deliveries: list[Delivery] = []
        unreachable: str | None = None
        for one in recipients:
            try:
                if unreachable is not None:
                    raise MailUnavailable(unreachable)
                done = await self._deliver(message, one, handing_over)
            except MailUnavailable as problem:
                unreachable = str(problem)
                email = one.address.email
                done = Delivery(email, Outcome.REFUSED, unreachable, True, unreachable=True)
            deliveries.append(done)
            if settled is not None:
                await settled(done)
        return deliveries

    async def check(self) -> str:
        """Connect, with TLS and credentials as for a mail, and close again."""
        client = await self._connect()
        client.close()
        how = "with TLS" if self._server.tls or self._server.starttls else "without TLS"
        signed_in = ", signed in" if self._server.username else ""
        return f"{self._server.name} answers {how}{signed_in}"

    async def close(self) -> None:
        """Close the connections that are kept."""
        await self._pool.close()

    async def _deliver(
        self, message: Message, recipient: Recipient, handing_over: HandingOver | None
    ) -> Delivery:
        content = (
            await asyncio.to_thread(mime_bytes, message, recipient)
            if is_large(message)
            else mime_bytes(message, recipient)
        )
        sender, email = message.sender.email, recipient.address.email
        try:
            async with self._pool.connection(of_campaign=handing_over is not None) as connection:
                if refusal := await self._envelope(connection, sender, email):
                    return refusal
                with _watched(connection.client, handing_over):
                    return await self._data(connection, email, content)
        except NoTurn as waited:
            raise MailUnavailable(BUSY.format(self._server.seconds)) from waited

    async def _envelope(self, connection: Connection, sender: str, email: str) -> Delivery | None:
        """Name sender and recipient; nothing is taken by that, so it may be tried again."""
        for attempt in range(2):
            try:
                await connection.client.mail(sender)
                await connection.client.rcpt(email)
            except SMTPResponseException as refused:
                await connection.reset()
                return _refusal(email, refused)
            except SMTPServerDisconnected as lost:
                # Servers close connections that are idle, which shows only now.
                if attempt or connection.is_new:
                    connection.drop()
                    raise MailUnavailable(f"{self._server.name} closed the connection.") from lost
                await connection.renew()
            except SMTPTimeoutError as slow:
                connection.drop()
                raise MailUnavailable(self._silent()) from slow
            else:
                return None
        raise AssertionError("the second attempt ends here")

    async def _data(self, connection: Connection, email: str, content: bytes) -> Delivery:
        try:
            response = await connection.client.data(content)
        except SMTPDataError as refused:
            await connection.reset()
            return _refusal(email, refused)
        except SMTPTimeoutError:
            connection.drop()
            words = f"{self._server.name} {UNCONFIRMED} (no answer in {self._server.seconds:g} s)"
            return Delivery(email, Outcome.UNKNOWN, words)
        except SMTPException:
            connection.drop()
            words = f"{self._server.name} {UNCONFIRMED} (connection lost)"
            return Delivery(email, Outcome.UNKNOWN, words)
        connection.used += 1
        return Delivery(email, Outcome.ACCEPTED, server_words(response.code, response.message))

    async def _connect(self) -> SMTP:
        server = self._server
        if self._context is None and (server.tls or server.starttls):
            self._context = await asyncio.to_thread(_context, server.ca_file)
        client = SMTP(
            hostname=server.host,
            port=server.port,
            username=server.username,
            password=server.password,
            use_tls=server.tls,
            start_tls=server.starttls and not server.tls,
            tls_context=self._context,
            timeout=min(server.seconds, CONNECT_SECONDS),
        )
        try:
            await client.connect()
        except BaseException as problem:
            client.close()
            if isinstance(problem, SMTPException | OSError | ValueError):
                raise MailUnavailable(self._why(problem)) from problem
            raise
        client.timeout = server.seconds
        return client

    def _why(self, problem: Exception) -> str:  # noqa: PLR0911 (one branch a problem)
        name = self._server.name
        match _tls_problem(problem) or problem:
            case ssl.SSLCertVerificationError() as refused:
                why = refused.verify_message or "not trusted"
                return f"The certificate of {name} is refused: {why.rstrip('.')}."
            case ssl.SSLError():
                return f"{name} does not speak TLS as it should."
            case SMTPAuthenticationError() as refused:
                words = server_words(refused.code, refused.message)
                return f"{name} refuses the user or the password of mail.url ({words})."
            case SMTPConnectTimeoutError() | SMTPTimeoutError():
                return self._silent()
            case SMTPConnectError() | OSError():
                return f"{name} could not be reached."
            case SMTPResponseException() as refused:
                return f"{name} refuses: {server_words(refused.code, refused.message)}."
            case _ if self._server.starttls and "STARTTLS" in str(problem):
                return f"{name} does not offer STARTTLS, and mail.starttls requires it."
            case _:
                return f"{name} could not be used."

    def _silent(self) -> str:
        return f"{self._server.name} did not answer in {self._server.seconds:g} s."


def _tls_problem(problem: BaseException) -> ssl.SSLError | None:
    """What is wrong with TLS, where that is behind a problem."""
    cause: BaseException | None = problem
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    return cause


@contextmanager
def _watched(client: SMTP, handing_over: HandingOver | None) -> Generator[None]:
    """Tell when the content is written, which the library does in one go after the server's `354`.

    Its own methods tell only afterwards.
    """
    protocol = client.protocol
    if handing_over is None or protocol is None:
        yield
        return
    write = protocol.write

    def write_and_tell(data: bytes) -> None:
        if data != b"DATA\r\n":
            handing_over()
        write(data)

    vars(protocol)["write"] = write_and_tell
    try:
        yield
    finally:
        del vars(protocol)["write"]


def _refusal(email: str, refused: SMTPResponseException) -> Delivery:
    words = server_words(refused.code, refused.message)
    return Delivery(email, Outcome.REFUSED, words, temporary=refused.code // 100 != 5)


def _context(ca_file: Path | None) -> ssl.SSLContext:
    """Certificates are verified, always; reading the trusted ones takes 30 ms."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca_file is not None:
        context.load_verify_locations(ca_file)
    return context
