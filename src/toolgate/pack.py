"""For packs of other packages: `import toolgate.pack as tg`; `toolgate.testing` is for tests.

These names are kept; where they are defined is not. docs/how-to/write-a-pack.md shows their use.
"""

from toolgate.background import run_in_background
from toolgate.db.engine import Database
from toolgate.db.schemas import Schema
from toolgate.db.transactions import Transaction
from toolgate.gate.access_checks import AccessCheck, AccessRequest
from toolgate.gate.arguments import TOLD, TOLD_FORMAT, TOLD_MISSING, TOLD_PRIVATE
from toolgate.gate.attachments import Attachment, Pieces
from toolgate.gate.audit_records import timestamp
from toolgate.gate.context import Context
from toolgate.gate.cursors import Cursors
from toolgate.gate.dialects import ENVELOPE, FLAGGED, JSON_RPC, SENTENCE, STATUS, Dialect
from toolgate.gate.epochs import Epoch
from toolgate.gate.errors import (
    Conflict,
    Forbidden,
    ForgeUnavailable,
    GateError,
    Gone,
    InvalidArguments,
    NotFound,
    PolicyViolation,
    Problem,
    QuotaExceeded,
    RateLimited,
    ResultTooLarge,
    TimedOut,
    TokenExpired,
    TooLarge,
    Unauthenticated,
    Unavailable,
)
from toolgate.gate.fields import Between, Whole
from toolgate.gate.from_request import FromRequest, Header, RequestHeaders
from toolgate.gate.live_switches import count_change
from toolgate.gate.offer import NotForDemo, Offer, Site
from toolgate.gate.principal import AgentType, Principal, Role
from toolgate.gate.prompts import Prompt, PromptArgument
from toolgate.gate.resources import Resource
from toolgate.gate.scope import Scoped
from toolgate.gate.tool import (
    Effect,
    Family,
    Input,
    NoArguments,
    Output,
    Pack,
    Route,
    StoredOutput,
    Target,
    Tool,
)
from toolgate.gate.tool_directory import ToolDirectory
from toolgate.outbound.client import Outbound
from toolgate.outbound.hops import AddressPolicy
from toolgate.outbound.responses import FetchedResponse, FetchFailed, ResponseLimits
from toolgate.ports.blobs import BlobDigest, BlobMissing, Blobs
from toolgate.ports.documents import (
    DocumentExists,
    DocumentStore,
    Filter,
    Operator,
    StoredDocument,
    StoreUnavailable,
)
from toolgate.ports.keys import PackKeys
from toolgate.setting_types import BadSettings, Section

__all__ = [
    "ENVELOPE",
    "FLAGGED",
    "JSON_RPC",
    "SENTENCE",
    "STATUS",
    "TOLD",
    "TOLD_FORMAT",
    "TOLD_MISSING",
    "TOLD_PRIVATE",
    "AccessCheck",
    "AccessRequest",
    "AddressPolicy",
    "AgentType",
    "Attachment",
    "BadSettings",
    "Between",
    "BlobDigest",
    "BlobMissing",
    "Blobs",
    "Conflict",
    "Context",
    "Cursors",
    "Database",
    "Dialect",
    "DocumentExists",
    "DocumentStore",
    "Effect",
    "Epoch",
    "Family",
    "FetchFailed",
    "FetchedResponse",
    "Filter",
    "Forbidden",
    "ForgeUnavailable",
    "FromRequest",
    "GateError",
    "Gone",
    "Header",
    "Input",
    "InvalidArguments",
    "NoArguments",
    "NotForDemo",
    "NotFound",
    "Offer",
    "Operator",
    "Outbound",
    "Output",
    "Pack",
    "PackKeys",
    "Pieces",
    "PolicyViolation",
    "Principal",
    "Problem",
    "Prompt",
    "PromptArgument",
    "QuotaExceeded",
    "RateLimited",
    "RequestHeaders",
    "Resource",
    "ResponseLimits",
    "ResultTooLarge",
    "Role",
    "Route",
    "Schema",
    "Scoped",
    "Section",
    "Site",
    "StoreUnavailable",
    "StoredDocument",
    "StoredOutput",
    "Target",
    "TimedOut",
    "TokenExpired",
    "TooLarge",
    "Tool",
    "ToolDirectory",
    "Transaction",
    "Unauthenticated",
    "Unavailable",
    "Whole",
    "count_change",
    "run_in_background",
    "timestamp",
]
