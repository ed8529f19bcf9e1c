"""For packs of other packages: `import toolgate.pack as tg`; `toolgate.testing` is for tests.

These names are kept; where they are defined is not. docs/how-to/write-a-pack.md shows their use.
"""

from toolgate.background import run_in_background
from toolgate.db.engine import Database
from toolgate.db.records import (
    delete_records,
    insert_record,
    insert_records,
    note_record,
    update_record,
    update_records,
)
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
    WritesOff,
)
from toolgate.gate.fields import Between, Whole
from toolgate.gate.from_request import FromRequest, Header, RequestHeaders
from toolgate.gate.live_switches import count_change
from toolgate.gate.offer import NotForDemo, Offer, ServiceWarning, Site
from toolgate.gate.pages import Page, PageAnswer, PageRequest, outside_caller
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
    Create,
    Cursor,
    Delete,
    DocumentExists,
    DocumentNotFound,
    DocumentReader,
    DocumentRefused,
    DocumentStore,
    DocumentTransaction,
    Filter,
    Merge,
    Operator,
    Order,
    Query,
    Set,
    StoreContended,
    StoredDocument,
    StoreUnavailable,
    Update,
    Write,
    new_id,
)
from toolgate.ports.forge import Forge
from toolgate.ports.keys import PackKeys
from toolgate.ports.transforms import (
    ArrayRemove,
    ArrayUnion,
    DeleteField,
    Increment,
    ServerTimestamp,
)
from toolgate.ports.tree import (
    Push,
    Remove,
    SetValue,
    TreeQuery,
    TreeRefused,
    TreeStore,
    UpdateChildren,
)
from toolgate.sections import Settings
from toolgate.setting_types import BadSettings, Section
from toolgate.workflows.declarations import (
    Run,
    RunFailed,
    RunRecord,
    RunStatus,
    RunStopped,
    Workflow,
)
from toolgate.workflows.runs import Workflows

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
    "ArrayRemove",
    "ArrayUnion",
    "Attachment",
    "BadSettings",
    "Between",
    "BlobDigest",
    "BlobMissing",
    "Blobs",
    "Conflict",
    "Context",
    "Create",
    "Cursor",
    "Cursors",
    "Database",
    "Delete",
    "DeleteField",
    "Dialect",
    "DocumentExists",
    "DocumentNotFound",
    "DocumentReader",
    "DocumentRefused",
    "DocumentStore",
    "DocumentTransaction",
    "Effect",
    "Epoch",
    "Family",
    "FetchFailed",
    "FetchedResponse",
    "Filter",
    "Forbidden",
    "Forge",
    "ForgeUnavailable",
    "FromRequest",
    "GateError",
    "Gone",
    "Header",
    "Increment",
    "Input",
    "InvalidArguments",
    "Merge",
    "NoArguments",
    "NotForDemo",
    "NotFound",
    "Offer",
    "Operator",
    "Order",
    "Outbound",
    "Output",
    "Pack",
    "PackKeys",
    "Page",
    "PageAnswer",
    "PageRequest",
    "Pieces",
    "PolicyViolation",
    "Principal",
    "Problem",
    "Prompt",
    "PromptArgument",
    "Push",
    "Query",
    "QuotaExceeded",
    "RateLimited",
    "Remove",
    "RequestHeaders",
    "Resource",
    "ResponseLimits",
    "ResultTooLarge",
    "Role",
    "Route",
    "Run",
    "RunFailed",
    "RunRecord",
    "RunStatus",
    "RunStopped",
    "Schema",
    "Scoped",
    "Section",
    "ServerTimestamp",
    "ServiceWarning",
    "Set",
    "SetValue",
    "Settings",
    "Site",
    "StoreContended",
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
    "TreeQuery",
    "TreeRefused",
    "TreeStore",
    "Unauthenticated",
    "Unavailable",
    "Update",
    "UpdateChildren",
    "Whole",
    "Workflow",
    "Workflows",
    "Write",
    "WritesOff",
    "count_change",
    "delete_records",
    "insert_record",
    "insert_records",
    "new_id",
    "note_record",
    "outside_caller",
    "run_in_background",
    "timestamp",
    "update_record",
    "update_records",
]
