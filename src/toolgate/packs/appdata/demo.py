"""Demo documents, in the order in which they are created.

Ids are not stored in the fields; the tools add them. Treat the dictionaries as read-only: copy
before changing.
"""

from collections.abc import Iterator

from toolgate.gate.demo_documents import store_demo
from toolgate.gate.offer import NotForDemo, Site
from toolgate.packs.appdata.collections import BUILT_IN
from toolgate.packs.appdata.pack import APPDATA
from toolgate.packs.appdata.world import AppDataWorld
from toolgate.ports.documents import Fields

_JANE = "abc123"
_ADMIN = "hub-admin"
_DEMO_USER = "user-1"

_APPS = (
    ("somos", "Somos", "Family trees and shared memories", "social", "beta",
     ["family-tree", "memory-sharing", "cultural-heritage"]),
    ("plantopia", "Plantopia", "Plan, tend and harvest a garden", "utility", "beta",
     ["garden-management", "plant-care", "harvest-tracking"]),
    ("mywealth", "MyWealth", "Budgets and savings in one place", "finance", "maintenance",
     ["budget-management", "analytics", "data-export"]),
    ("mydata", "MyData", "See, export and delete your own data", "productivity", "beta",
     ["data-export", "api-access"]),
    ("nexus", "Nexus", "Talk with the people of your groups", "community", "beta",
     ["community-moderation", "memory-sharing"]),
    ("crowdpool", "CrowdPool", "Collect money for a common purpose", "community", "deprecated",
     ["proposal-creation", "settlement-tracking"]),
)  # fmt: skip


def _apps() -> Iterator[tuple[str, Fields]]:
    yield "hub", {"name": "CyberEco Hub", "status": "active", "category": "identity"}
    yield "justsplit", {"name": "JustSplit", "status": "active", "category": "finance"}
    yield "demos", {"name": "Demos", "status": "active", "category": "governance"}
    for app, name, what, category, status, features in _APPS:
        yield (
            app,
            {
                "name": name,
                "description": what,
                "icon": app,
                "url": f"https://{app}.example.com",
                "category": category,
                "status": status,
                "requiresAuth": True,
                "minRole": "user",
                "features": features,
                "createdAt": "2025-02-01T09:00:00Z",
                "updatedAt": "2025-05-20T09:00:00Z",
            },
        )


# Id, name, day of joining, then role and features in each app but the Hub.
_USERS: tuple[tuple[str, str, str, dict[str, tuple[str, ...]]], ...] = (
    ("xyz789", "Sam Rivera", "2025-01-20", {}),
    ("user-2", "Alice Johnson", "2025-02-04",
     {"justsplit": ("member", "expense-tracking", "group-management")}),
    ("user-3", "Bob Smith", "2025-02-05",
     {"justsplit": ("member", "expense-tracking", "group-management")}),
    ("user-4", "Charlie Brown", "2025-02-06",
     {"justsplit": ("member", "expense-tracking", "group-management")}),
    ("user-5", "David Miller", "2025-02-07",
     {"justsplit": ("member", "expense-tracking", "settlement-tracking")}),
    ("user-6", "Emma Wilson", "2025-02-08",
     {"justsplit": ("moderator", "expense-tracking", "group-management", "settlement-tracking")}),
    ("user-7", "Frank Davis", "2025-02-09",
     {"justsplit": ("member", "expense-tracking"), "mywealth": ("owner", "budget-management")}),
    ("user-8", "Grace Lee", "2025-02-10",
     {"demos": ("admin", "proposal-creation", "voting", "community-moderation")}),
    ("user-9", "Henry Taylor", "2025-02-11",
     {"somos": ("owner", "family-tree", "memory-sharing", "cultural-heritage")}),
    ("user-10", "Iris Chen", "2025-02-12",
     {"plantopia": ("member", "garden-management", "plant-care")}),
)  # fmt: skip


def _app_permission(app: str, role: str, *features: str) -> Fields:
    return {"appId": app, "roles": [role], "features": list(features)}


def _user(email: str, name: str, created: str, permissions: list[Fields]) -> Fields:
    return {
        "email": email,
        "displayName": name,
        "apps": [permission["appId"] for permission in permissions],
        "permissions": permissions,
        "isAdmin": False,
        "createdAt": created,
        "updatedAt": created,
    }


def _users() -> Iterator[tuple[str, Fields]]:
    yield (
        _JANE,
        {
            "email": "jane@example.com",
            "displayName": "Jane Doe",
            "apps": ["hub", "justsplit"],
            "isAdmin": False,
            "createdAt": "2025-01-15T10:30:00Z",
        },
    )
    owner = _app_permission("hub", "owner", "dashboard", "profile", "api-access")
    admin = _user("admin@example.com", "Hub Admin", "2025-01-02T09:00:00Z", [owner])
    yield _ADMIN, {**admin, "isAdmin": True}
    yield _DEMO_USER, _demo_user()
    for user, name, day, apps in _USERS:
        permissions = [_app_permission("hub", "member", "dashboard", "profile")]
        permissions += [_app_permission(app, *granted) for app, granted in apps.items()]
        email = f"{name.split()[0].lower()}@example.com"
        yield user, _user(email, name, f"{day}T09:00:00Z", permissions)


def _demo_user() -> Fields:
    permissions = [
        _app_permission("hub", "member", "dashboard", "profile"),
        _app_permission("justsplit", "owner", "expense-tracking", "group-management"),
        _app_permission("demos", "member", "voting"),
    ]
    return {
        **_user("demo@cybere.co", "Demo User", "2025-02-03T09:00:00Z", permissions),
        "photoURL": "https://images.example.com/demo-user.png",
        "preferences": _preference("auto", "en", "en-US", "USD", "12h"),
    }


def _permissions_of_jane() -> Iterator[tuple[str, Fields]]:
    """Her entries lie below her record, and reach one app further than its `apps`."""
    yield "hub", _app_permission("hub", "member", "dashboard", "profile")
    yield "justsplit", _app_permission("justsplit", "admin", "dashboard", "export", "settings")
    yield "demos", _app_permission("demos", "moderator", "dashboard", "proposals", "voting")


_GROUPS = (
    ("lake-weekend", "Lake Weekend Trip", "friends", "2025-04-01T17:00:00Z",
     [_DEMO_USER, "user-2", "user-3", _JANE]),
    ("roommates", "Apartment Roommates", "friends", "2025-03-01T12:00:00Z",
     [_DEMO_USER, "user-4", "user-5"]),
    ("lunch-club", "Office Lunch Club", "organization", "2025-03-10T11:00:00Z",
     ["user-6", _DEMO_USER, "user-7", "user-8"]),
)  # fmt: skip


def _groups() -> Iterator[tuple[str, Fields]]:
    for group, name, kind, created, users in _GROUPS:
        private = kind == "friends"
        members = [{"userId": user, "role": "member", "joinedAt": created} for user in users]
        members[0]["role"] = "admin"
        yield (
            group,
            {
                "name": name,
                "type": kind,
                "members": members,
                "settings": {
                    "isPrivate": private,
                    "requireApproval": private,
                    "allowInvites": True,
                },
                "createdAt": created,
            },
        )


_TRANSACTIONS = (
    (_DEMO_USER, "expense", 85.50, "Gas for the drive to the lake", "transport", "2025-04-11"),
    ("user-2", "expense", 156.75, "Groceries for the lake weekend", "groceries", "2025-04-12"),
    ("user-4", "expense", 89.99, "Internet for the apartment", "utilities", "2025-05-03"),
    ("user-6", "expense", 125.00, "Team lunch", "food", "2025-05-16"),
    (_DEMO_USER, "expense", 800, "Rent of the apartment", "housing", "2025-06-01"),
    ("user-5", "settlement", 266.66, "Share of the rent, paid by Venmo", "housing", "2025-06-02"),
)


def _transactions() -> Iterator[tuple[str, Fields]]:
    for n, (user, kind, amount, what, category, day) in enumerate(_TRANSACTIONS, 1):
        yield (
            f"transaction-{n}",
            {
                "userId": user,
                "appId": "justsplit",
                "type": kind,
                "amount": amount,
                "currency": "USD",
                "description": what,
                "category": category,
                "date": f"{day}T12:00:00Z",
                "createdAt": f"{day}T12:05:00Z",
            },
        )


_NOTIFICATIONS: tuple[tuple[str, str, str, str, str, bool, str, Fields], ...] = (
    (_JANE, "success", "justsplit", "You joined a group",
     "Demo User added you to Lake Weekend Trip.", True, "2025-04-01T17:05:00Z", {}),
    (_DEMO_USER, "info", "justsplit", "Payment received",
     "David Miller settled 266.66 USD.", False, "2025-06-02T12:06:00Z",
     {"actionUrl": "https://justsplit.example.com/settlements", "actionLabel": "See it"}),
    ("user-8", "warning", "demos", "A vote closes soon",
     "One proposal closes tomorrow.", False, "2025-06-05T08:00:00Z",
     {"expiresAt": "2025-06-06T08:00:00Z"}),
)  # fmt: skip


def _notifications() -> Iterator[tuple[str, Fields]]:
    for n, (user, kind, app, title, text, read, at, more) in enumerate(_NOTIFICATIONS, 1):
        yield (
            f"notification-{n}",
            {
                "userId": user,
                "type": kind,
                "title": title,
                "message": text,
                "read": read,
                "appId": app,
                "createdAt": at,
                **more,
            },
        )


_GRANTS: tuple[tuple[str, str, str, list[str], Fields], ...] = (
    ("user-2", "group", "lake-weekend", ["read", "write"], {}),
    ("user-4", "transaction", "transaction-5", ["read"], {}),
    (_JANE, "group", "lake-weekend", ["read"], {"expiresAt": "2025-12-31T23:59:59Z"}),
)


def _grants() -> Iterator[Fields]:
    for user, kind, resource, permissions, more in _GRANTS:
        yield {
            "resourceType": kind,
            "resourceId": resource,
            "userId": user,
            "permissions": [*permissions],
            "grantedBy": _DEMO_USER,
            "grantedAt": "2025-06-02T08:00:00Z",
            **more,
        }


def _permissions() -> Iterator[tuple[str, Fields]]:
    return ((f"permission-{n}", grant) for n, grant in enumerate(_grants(), 1))


def _resource_permissions() -> Iterator[tuple[str, Fields]]:
    for grant in _grants():
        yield f"{grant['userId']}_{grant['resourceType']}_{grant['resourceId']}", grant


_LOGS = (
    (_JANE, "justsplit", "grant", "2025-01-15T10:31:00Z", ["dashboard", "export"]),
    (_JANE, "justsplit", "modify", "2025-03-04T14:00:00Z", ["settings"]),
    ("xyz789", "justsplit", "revoke", "2025-03-20T10:00:00Z", ["expense-tracking"]),
)


def _logs() -> Iterator[tuple[str, Fields]]:
    for n, (user, app, action, at, features) in enumerate(_LOGS, 1):
        yield (
            f"log-{n}",
            {
                "userId": user,
                "appId": app,
                "action": action,
                "features": features,
                "grantedBy": _ADMIN,
                "timestamp": at,
                "createdAt": at,
            },
        )


_FRIENDSHIPS = (
    (_DEMO_USER, "user-2", "accepted", "2025-03-01T19:00:00Z"),
    (_JANE, _DEMO_USER, "accepted", "2025-03-02T07:30:00Z"),
    ("user-9", "user-10", "pending", "2025-03-01T18:00:00Z"),
    ("user-7", "xyz789", "rejected", "2025-03-03T12:00:00Z"),
)


def _friendships() -> Iterator[tuple[str, Fields]]:
    for n, (one, other, status, updated) in enumerate(_FRIENDSHIPS, 1):
        yield (
            f"friendship-{n}",
            {
                "users": [one, other],
                "status": status,
                "requestedBy": one,
                "createdAt": "2025-03-01T18:00:00Z",
                "updatedAt": updated,
            },
        )


_WEBHOOKS = (
    ("justsplit", ["auth.signin.success", "export.completed"], True, 0),
    ("demos", ["privacy.consent.recorded"], False, 5),
)


def _webhooks() -> Iterator[tuple[str, Fields]]:
    for n, (app, events, active, failures) in enumerate(_WEBHOOKS, 1):
        yield (
            f"webhook-{n}",
            {
                "appId": app,
                "url": f"https://hooks.example.com/{app}",
                "events": events,
                "active": active,
                "createdBy": _ADMIN,
                "createdAt": "2025-03-15T09:00:00Z",
                "updatedAt": "2025-05-01T09:00:00Z",
                "failureCount": failures,
            },
        )


def _preference(theme: str, language: str, locale: str, currency: str, clock: str) -> Fields:
    return {
        "theme": theme,
        "language": language,
        "locale": locale,
        "currency": currency,
        "dateFormat": "YYYY-MM-DD",
        "timeFormat": clock,
        "notifications": {"email": True, "push": True, "sms": False},
    }


def _preferences() -> Iterator[tuple[str, Fields]]:
    yield _JANE, _preference("dark", "en", "en-GB", "EUR", "24h")
    yield _DEMO_USER, _preference("auto", "en", "en-US", "USD", "12h")
    yield "user-10", _preference("light", "es", "es-CO", "COP", "12h")


_SYNCS: tuple[tuple[str, str, str, str, int, Fields], ...] = (
    (_JANE, "justsplit", "2025-06-01T06:00:00Z", "synced", 0, {}),
    (_DEMO_USER, "justsplit", "2025-06-02T12:10:00Z", "pending", 2, {}),
    ("user-8", "demos", "2025-05-30T21:00:00Z", "error", 4,
     {"errorMessage": "The app did not answer in time"}),
)  # fmt: skip


def _syncs() -> Iterator[tuple[str, Fields]]:
    for user, app, at, status, waiting, more in _SYNCS:
        yield (
            f"{user}_{app}",
            {
                "userId": user,
                "appId": app,
                "lastSyncAt": at,
                "syncStatus": status,
                "pendingChanges": waiting,
                **more,
            },
        )


DEMO: tuple[tuple[str, str, Fields], ...] = tuple(
    (collection, document_id, fields)
    for collection, documents in (
        ("apps", _apps()),
        ("users", _users()),
        (f"users/{_JANE}/permissions", _permissions_of_jane()),
        ("groups", _groups()),
        ("transactions", _transactions()),
        ("notifications", _notifications()),
        ("permissions", _permissions()),
        ("resourcePermissions", _resource_permissions()),
        ("permissionLogs", _logs()),
        ("friendships", _friendships()),
        ("webhookRegistrations", _webhooks()),
        ("userPreferences", _preferences()),
        ("dataSyncStatus", _syncs()),
    )
    for document_id, fields in documents
)


async def load(world: AppDataWorld, site: Site) -> int:
    """Store the demo documents that are not there yet; return how many were stored."""
    if world.collections is not BUILT_IN:
        raise NotForDemo(
            "appdata.collections names your own file, so no demo documents were loaded."
        )
    return await store_demo(APPDATA, site, DEMO, BUILT_IN.by_name)
