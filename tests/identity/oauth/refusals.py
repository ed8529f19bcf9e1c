"""What several tests of attacks need: a request's name, and the rule that refused it."""

from typing import Any

from tests.transports.conftest import Web


def named(request_id: str) -> dict[str, str]:
    """The header under whose value a request is audited."""
    return {"X-Request-Id": request_id}


async def audited(web: Web, request_id: str) -> str:
    """The rule that refused a request."""
    [row] = await web.audit_rows(request_id)
    assert (row["decision"], row["status"]) == ("deny", "error")
    return row["rule"]


async def change(web: Web, statement: Any) -> None:
    """Change the database behind the server's back."""
    await web.kit.app.gate.database.write(lambda connection: connection.execute(statement))
    web.kit.app.credentials.forget()
