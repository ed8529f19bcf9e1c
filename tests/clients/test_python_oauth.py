"""The official Python client signs a person in by itself, against a running server."""

import time

import pytest
from tests.clients.python_oauth import USER_TOOLS, Mode, Person, connected, revoke, tools_of
from tests.servers import Server

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("path", ["/mcp", "/backend-manager/mcp"])
async def test_the_client_goes_the_whole_way(server: Server, path: str, mode: Mode) -> None:
    person = Person({"key": server.key_of("user")})
    async with connected(server, person, path, mode) as (client, provider):
        assert await tools_of(client) == USER_TOOLS
        assert (await client.call_tool("list_collections", {})).is_error is False
        assert (person.sign_ins, len(person.tokens)) == (1, 1)

        provider.context.token_expiry_time = time.time() - 1
        assert (await client.call_tool("list_collections", {})).is_error is False
        assert (person.sign_ins, len(person.tokens)) == (1, 2), "refreshed without the person"
        assert person.tokens[0].refresh_token != person.tokens[1].refresh_token

    await revoke(server, person)
    async with connected(server, person, path, mode) as (client, _):
        assert (await client.call_tool("list_collections", {})).is_error is False
    assert person.sign_ins == 2, "after the revocation the person has to sign in again"


async def test_an_admin_signs_in_with_the_admin_key(server: Server) -> None:
    person = Person({"key": server.admin_key})
    async with connected(server, person) as (client, _):
        assert "get_document" in await tools_of(client)
