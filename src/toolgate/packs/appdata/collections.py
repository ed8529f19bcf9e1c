"""The data model of the pack: twelve collections, and what their documents hold.

Order matters: it is the order in which `list_collections` and error messages name them.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a document; `type` is in TypeScript notation."""

    name: str
    type: str
    description: str


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection that the data tools may touch."""

    name: str
    description: str
    document_type: str
    owner: str
    fields: tuple[Field, ...]


_RESOURCE_PERMISSION = (
    Field("resourceType", "string", "Kind of resource, for example group or transaction"),
    Field("resourceId", "string", "ID of the resource"),
    Field("userId", "string", "User who holds the permission"),
    Field("permissions", "string[]", "What the user may do; any of: read, write, delete"),
    Field("grantedBy", "string", "ID of the user who granted it"),
    Field("grantedAt", "string", "When it was granted (ISO 8601)"),
    Field("expiresAt", "string", "When it stops to apply (ISO 8601); absent means never"),
)

_PREFERENCES = (
    Field("theme", "string", "Colour scheme; one of: light, dark, auto"),
    Field("language", "string", "Language of the interface; one of: en, es"),
    Field("locale", "string", "Locale for numbers and dates, for example en-US"),
    Field("currency", "string", "Preferred currency (ISO 4217 code); USD unless chosen"),
    Field("dateFormat", "string", "Pattern for dates, for example YYYY-MM-DD"),
    Field("timeFormat", "string", "Clock; one of: 12h, 24h"),
    Field("notifications", "NotificationPreferences", "Channels switched on: email, push, sms"),
)

_USERS = Collection(
    name="users",
    description="Central user records for the CyberEco ecosystem",
    document_type="HubUser / SharedUserProfile",
    owner="Hub",
    fields=(
        Field("id", "string", "User ID (matches Firebase Auth UID)"),
        Field("email", "string", "User email address"),
        Field("displayName", "string", "User display name"),
        Field("photoURL", "string", "Address of the profile picture"),
        Field("apps", "string[]", "List of app IDs user has access to"),
        Field("permissions", "AppPermission[]", "Roles and features of the user in each app"),
        Field("isAdmin", "boolean", "Global admin flag"),
        Field("preferences", "UserPreferences", "Theme, language, currency and notifications"),
        Field("createdAt", "string", "When the account was created (ISO 8601)"),
        Field("updatedAt", "string", "When the record last changed (ISO 8601)"),
    ),
)

_TRANSACTIONS = Collection(
    name="transactions",
    description="Cross-app financial records",
    document_type="Transaction",
    owner="Hub",
    fields=(
        Field("id", "string", "Transaction ID"),
        Field("userId", "string", "User who paid or received the money"),
        Field("appId", "string", "App that recorded the transaction"),
        Field("type", "string", "Kind; one of: expense, income, transfer, settlement"),
        Field("amount", "number", "Amount of money, in units of the currency"),
        Field("currency", "string", "Currency (ISO 4217 code)"),
        Field("description", "string", "What the money was for"),
        Field("category", "string", "Category chosen in the app, for example groceries"),
        Field("date", "string", "When the money moved (ISO 8601)"),
        Field("createdAt", "string", "When the transaction was recorded (ISO 8601)"),
    ),
)

_GROUPS = Collection(
    name="groups",
    description="Cross-app group memberships",
    document_type="SharedGroup",
    owner="Hub",
    fields=(
        Field("id", "string", "Group ID"),
        Field("name", "string", "Name of the group"),
        Field("type", "string", "Kind; one of: family, friends, community, organization, other"),
        Field(
            "members",
            "GroupMember[]",
            "Members, each with userId, role (admin, moderator or member) and joinedAt",
        ),
        Field("settings", "GroupSettings", "Switches: isPrivate, requireApproval, allowInvites"),
        Field("createdAt", "string", "When the group was created (ISO 8601)"),
    ),
)

_NOTIFICATIONS = Collection(
    name="notifications",
    description="Cross-app notification queue",
    document_type="Notification",
    owner="Hub",
    fields=(
        Field("id", "string", "Notification ID"),
        Field("userId", "string", "User who receives it"),
        Field("type", "string", "Tone; one of: info, success, warning, error"),
        Field("title", "string", "Headline"),
        Field("message", "string", "Text of the notification"),
        Field("appId", "string", "App that sent it"),
        Field("actionUrl", "string", "Where its button leads, if it has one"),
        Field("actionLabel", "string", "Text of its button, if it has one"),
        Field("read", "boolean", "Whether the user has read it"),
        Field("createdAt", "string", "When it was sent (ISO 8601)"),
        Field("expiresAt", "string", "When it may be dropped (ISO 8601); absent means never"),
    ),
)

_PERMISSIONS = Collection(
    name="permissions",
    description="Fine-grained resource access",
    document_type="ResourcePermission",
    owner="Hub",
    fields=(Field("id", "string", "Permission ID"), *_RESOURCE_PERMISSION),
)

_RESOURCE_PERMISSIONS = Collection(
    name="resourcePermissions",
    description="Resource-level permissions with compound key",
    document_type="ResourcePermission",
    owner="Hub",
    fields=(
        Field("id", "string", "Compound key: userId, resourceType and resourceId joined by _"),
        *_RESOURCE_PERMISSION,
    ),
)

_PERMISSION_LOGS = Collection(
    name="permissionLogs",
    description="Audit trail for permission changes",
    document_type="PermissionChangeLog",
    owner="Hub",
    fields=(
        Field("id", "string", "Log entry ID"),
        Field("userId", "string", "User whose permissions changed"),
        Field("appId", "string", "App the change applies to"),
        Field("action", "string", "What happened; one of: grant, revoke, modify"),
        Field("features", "string[]", "Features touched by the change"),
        Field("grantedBy", "string", "ID of the user who made the change"),
        Field("timestamp", "string", "When the change took effect (ISO 8601)"),
        Field("createdAt", "string", "When the entry was written (ISO 8601)"),
    ),
)

_APPS = Collection(
    name="apps",
    description="App registry for the ecosystem",
    document_type="App",
    owner="Hub",
    fields=(
        Field("id", "string", "App ID, as used in users.apps and in every appId field"),
        Field("name", "string", "Name shown to people"),
        Field("description", "string", "What the app is for"),
        Field("icon", "string", "Name or address of the icon"),
        Field("url", "string", "Where the app is served"),
        Field("proxyPath", "string", "Path under the Hub that forwards to the app, if any"),
        Field(
            "category",
            "string",
            "Kind of app; one of: identity, finance, governance, community, productivity, "
            "social, utility, info",
        ),
        Field("status", "string", "Stage; one of: active, beta, maintenance, deprecated"),
        Field("requiresAuth", "boolean", "Whether people must sign in"),
        Field("minRole", "string", "Lowest role that may open it; one of: user, admin"),
        Field("features", "string[]", "Feature names that can be granted to users"),
        Field("clientId", "string", "OAuth client ID of the app, if it has one"),
        Field("createdAt", "string", "When the app was registered (ISO 8601)"),
        Field("updatedAt", "string", "When the registration last changed (ISO 8601)"),
    ),
)

_FRIENDSHIPS = Collection(
    name="friendships",
    description="Social connections between users",
    document_type="Friendship",
    owner="Shared",
    fields=(
        Field("id", "string", "Friendship ID"),
        Field("users", "string[]", "IDs of the two users"),
        Field("status", "string", "State of the request; one of: pending, accepted, rejected"),
        Field("requestedBy", "string", "ID of the user who asked"),
        Field("createdAt", "string", "When the request was made (ISO 8601)"),
        Field("updatedAt", "string", "When the state last changed (ISO 8601)"),
    ),
)

_WEBHOOK_REGISTRATIONS = Collection(
    name="webhookRegistrations",
    description="External webhook endpoints",
    document_type="WebhookRegistration",
    owner="Hub",
    fields=(
        Field("id", "string", "Registration ID"),
        Field("appId", "string", "App that owns the endpoint"),
        Field("url", "string", "Address that receives the events"),
        Field("events", "string[]", "Event names it listens to, for example auth.signout"),
        Field("secret", "string", "Key of the HMAC-SHA256 signature on each delivery"),
        Field("active", "boolean", "Whether events are delivered"),
        Field("createdBy", "string", "ID of the user who registered it"),
        Field("createdAt", "string", "When it was registered (ISO 8601)"),
        Field("updatedAt", "string", "When it last changed (ISO 8601)"),
        Field("lastDeliveryAt", "string", "When an event was last delivered (ISO 8601), if ever"),
        Field("failureCount", "number", "Deliveries that failed since the last success"),
    ),
)

_USER_PREFERENCES = Collection(
    name="userPreferences",
    description="Extended user preferences",
    document_type="UserPreferences",
    owner="Hub",
    fields=(Field("id", "string", "ID of the user the preferences belong to"), *_PREFERENCES),
)

_DATA_SYNC_STATUS = Collection(
    name="dataSyncStatus",
    description="Per-user, per-app sync state",
    document_type="DataSyncStatus",
    owner="Hub",
    fields=(
        Field("id", "string", "Sync record ID"),
        Field("userId", "string", "User whose data is synced"),
        Field("appId", "string", "App the data is synced with"),
        Field("lastSyncAt", "string", "When the last sync finished (ISO 8601)"),
        Field("syncStatus", "string", "State; one of: synced, pending, error"),
        Field("pendingChanges", "number", "Changes that still wait to be synced"),
        Field("errorMessage", "string", "Why the last sync failed; only when in error"),
    ),
)

COLLECTIONS: tuple[Collection, ...] = (
    _USERS,
    _TRANSACTIONS,
    _GROUPS,
    _NOTIFICATIONS,
    _PERMISSIONS,
    _RESOURCE_PERMISSIONS,
    _PERMISSION_LOGS,
    _APPS,
    _FRIENDSHIPS,
    _WEBHOOK_REGISTRATIONS,
    _USER_PREFERENCES,
    _DATA_SYNC_STATUS,
)

BY_NAME: dict[str, Collection] = {collection.name: collection for collection in COLLECTIONS}
