"""Documents of the demo data, and queries for them."""

from typing import Any

from toolgate.gate.errors import InvalidArguments
from toolgate.testing import Kit

JANE = {
    "id": "abc123",
    "email": "jane@example.com",
    "displayName": "Jane Doe",
    "apps": ["hub", "justsplit"],
    "isAdmin": False,
    "createdAt": "2025-01-15T10:30:00Z",
}
NOTIFICATION = {
    "userId": "abc123",
    "type": "info",
    "title": "Welcome to CyberEco",
    "message": "Your account has been set up successfully.",
    "read": False,
    "appId": "hub",
    "createdAt": "2025-06-01T12:00:00Z",
}
NEW_APP = {
    "name": "My New App",
    "description": "A CyberEco ecosystem application",
    "status": "beta",
    "category": "community",
}
WRITES_DISABLED = {
    "error": "Write operations are disabled. Set MCP_ENABLE_WRITES=true to enable.",
    "success": False,
}


def condition(field: Any, operator: Any, value: Any) -> dict[str, Any]:
    return {"field": field, "operator": operator, "value": value}


async def ids(kit: Kit, collection: str, *filters: Any, limit: int = 100) -> list[str]:
    found = await kit.call(
        "query_collection", collection=collection, filters=list(filters), limit=limit
    )
    assert found.error is None, found.body
    return [one["id"] for one in found.body["data"]]


def problem_of(outcome: Any) -> str:
    assert isinstance(outcome.error, InvalidArguments), outcome.body
    return outcome.body["error"]
