"""Tools of your own: routes of your backend and handlers in Python, beside the built-in tools.

from toolgate.extend import HandlerContext, RouteTool, tool
"""

from toolgate.extend.context import HandlerContext
from toolgate.extend.declarations import RouteTool, tool
from toolgate.gate.attachments import Attachment
from toolgate.gate.errors import Conflict, Forbidden, NotFound, Unavailable
from toolgate.gate.tool import Input, Output

__all__ = [
    "Attachment",
    "Conflict",
    "Forbidden",
    "HandlerContext",
    "Input",
    "NotFound",
    "Output",
    "RouteTool",
    "Unavailable",
    "tool",
]
