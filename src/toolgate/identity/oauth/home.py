"""The first page, at `/`: what this is, and where to go. It says nothing of the tools."""

from toolgate.identity.oauth.messages import Request, Response
from toolgate.identity.oauth.page_templates import FIXED, page

TEXT = """\
toolgate at {host}

A door between AI agents and an application's backend: each call is identified, decided by
rules, limited and audited.

  MCP      {base}/mcp
  HTTP     {base}/v1/tools
  OpenAPI  {base}/openapi.json
  Health   {base}/healthz

All but the last want credentials: Authorization: Bearer KEY, or a client that signs you in.
An administrator makes keys with `toolgate keys create`. Documentation: the folder docs of the
toolgate distribution; `toolgate --help` shows the commands.
"""


class HomePage:
    """Answers a browser with a page, and everybody else with text."""

    methods = ("GET", "HEAD")

    async def __call__(self, request: Request) -> Response:
        """The page."""
        if "text/html" in request.accept:
            return page(request, "home", base=request.base)
        text = TEXT.format(host=request.host, base=request.base)
        kind = ("content-type", "text/plain; charset=utf-8")
        headers = tuple(kind if one[0] == "content-type" else one for one in FIXED)
        return Response(headers=headers, body=text.encode())
