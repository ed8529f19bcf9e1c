"""A tool that hands over files, for tests on every transport."""

from typing import Any

from pydantic import Field
from tests.gate.tools import a_tool

from toolgate.gate.attachments import Attachment
from toolgate.gate.catalogue import AnyTool
from toolgate.gate.context import Context
from toolgate.gate.errors import NotFound
from toolgate.gate.tool import Input, Output

MIB = 1024 * 1024
LARGE = bytes(range(256)) * (10 * MIB // 256)
FILES = {
    "hello.txt": b"Hello",
    "empty": b"",
    "longer": b"x" * 61,
    "../../up.png": b"\x89PNG",
    "größe.txt": b"1",
    "large": LARGE,
    "larger": LARGE + b"1",
}
TYPES = {
    "hello.txt": "text/plain; charset=utf-8",
    "../../up.png": "image/png",
    "empty": "text/html\r\nX-Evil: 1",
}


class Wanted(Input):
    """Which file."""

    path: str = Field(description="Its path.")


class File(Output):
    """A file."""

    path: str = Field(description="Its path.")
    content_bytes_base64: Attachment | None = Field(None, description="What is in it.")


class Folder:
    """The files, and how often one was read."""

    def __init__(self) -> None:
        self.reads = 0

    async def get(self, ctx: Context[Any], args: Wanted) -> File:
        """The file, or where it should be."""
        if args.path == "nothing":
            return File(path=args.path, content_bytes_base64=None)
        if args.path not in FILES:
            raise NotFound(f"There is no file {args.path}.")
        data = FILES[args.path]

        async def read() -> bytes:
            self.reads += 1
            return data

        kind = TYPES.get(args.path, "application/octet-stream")
        attachment = Attachment(size=len(data), read=read, media_type=kind, name=args.path)
        return File(path=args.path, content_bytes_base64=attachment)

    def tool(self, name: str = "file.get", **more: Any) -> AnyTool:
        """The tool that gets them."""
        return a_tool(name, self.get, takes=Wanted, gives=File, **more)
