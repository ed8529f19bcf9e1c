"""Demo documents: what the users did, share and may do."""

from collections.abc import Iterator

from toolgate.packs.appdata.demo.people import ADMIN, DEMO_USER, JANE
from toolgate.ports.documents import Fields

_GROUPS = (
    ("lake-weekend", "Lake Weekend Trip", "friends", "2025-04-01T17:00:00Z",
     [DEMO_USER, "user-2", "user-3", JANE]),
    ("roommates", "Apartment Roommates", "friends", "2025-03-01T12:00:00Z",
     [DEMO_USER, "user-4", "user-5"]),
    ("lunch-club", "Office Lunch Club", "organization", "2025-03-10T11:00:00Z",
     ["user-6", DEMO_USER, "user-7", "user-8"]),
)  # fmt: skip


def groups() -> Iterator[tuple[str, Fields]]:
    """Groups of users."""
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
    (DEMO_USER, "expense", 85.50, "Gas for the drive to the lake", "transport", "2025-04-11"),
    ("user-2", "expense", 156.75, "Groceries for the lake weekend", "groceries", "2025-04-12"),
    ("user-4", "expense", 89.99, "Internet for the apartment", "utilities", "2025-05-03"),
    ("user-6", "expense", 125.00, "Team lunch", "food", "2025-05-16"),
    (DEMO_USER, "expense", 800, "Rent of the apartment", "housing", "2025-06-01"),
    ("user-5", "settlement", 266.66, "Share of the rent, paid by Venmo", "housing", "2025-06-02"),
)


def transactions() -> Iterator[tuple[str, Fields]]:
    """Expenses and settlements."""
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
    (JANE, "success", "justsplit", "You joined a group",
     "Demo User added you to Lake Weekend Trip.", True, "2025-04-01T17:05:00Z", {}),
    (DEMO_USER, "info", "justsplit", "Payment received",
     "David Miller settled 266.66 USD.", False, "2025-06-02T12:06:00Z",
     {"actionUrl": "https://justsplit.example.com/settlements", "actionLabel": "See it"}),
    ("user-8", "warning", "demos", "A vote closes soon",
     "One proposal closes tomorrow.", False, "2025-06-05T08:00:00Z",
     {"expiresAt": "2025-06-06T08:00:00Z"}),
)  # fmt: skip


def notifications() -> Iterator[tuple[str, Fields]]:
    """Notifications, read and unread."""
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
    (JANE, "group", "lake-weekend", ["read"], {"expiresAt": "2025-12-31T23:59:59Z"}),
)


def _grants() -> Iterator[Fields]:
    for user, kind, resource, permissions, more in _GRANTS:
        yield {
            "resourceType": kind,
            "resourceId": resource,
            "userId": user,
            "permissions": [*permissions],
            "grantedBy": DEMO_USER,
            "grantedAt": "2025-06-02T08:00:00Z",
            **more,
        }


def permissions() -> Iterator[tuple[str, Fields]]:
    """Permissions for single resources, numbered."""
    return ((f"permission-{n}", grant) for n, grant in enumerate(_grants(), 1))


def resource_permissions() -> Iterator[tuple[str, Fields]]:
    """The same, each under the user and the resource it is about."""
    for grant in _grants():
        yield f"{grant['userId']}_{grant['resourceType']}_{grant['resourceId']}", grant


_LOGS = (
    (JANE, "justsplit", "grant", "2025-01-15T10:31:00Z", ["dashboard", "export"]),
    (JANE, "justsplit", "modify", "2025-03-04T14:00:00Z", ["settings"]),
    ("xyz789", "justsplit", "revoke", "2025-03-20T10:00:00Z", ["expense-tracking"]),
)


def logs() -> Iterator[tuple[str, Fields]]:
    """Changes of permissions."""
    for n, (user, app, action, at, features) in enumerate(_LOGS, 1):
        yield (
            f"log-{n}",
            {
                "userId": user,
                "appId": app,
                "action": action,
                "features": features,
                "grantedBy": ADMIN,
                "timestamp": at,
                "createdAt": at,
            },
        )


_FRIENDSHIPS = (
    (DEMO_USER, "user-2", "accepted", "2025-03-01T19:00:00Z"),
    (JANE, DEMO_USER, "accepted", "2025-03-02T07:30:00Z"),
    ("user-9", "user-10", "pending", "2025-03-01T18:00:00Z"),
    ("user-7", "xyz789", "rejected", "2025-03-03T12:00:00Z"),
)


def friendships() -> Iterator[tuple[str, Fields]]:
    """Friendships in every state."""
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


def webhooks() -> Iterator[tuple[str, Fields]]:
    """Registered webhooks."""
    for n, (app, events, active, failures) in enumerate(_WEBHOOKS, 1):
        yield (
            f"webhook-{n}",
            {
                "appId": app,
                "url": f"https://hooks.example.com/{app}",
                "events": events,
                "active": active,
                "createdBy": ADMIN,
                "createdAt": "2025-03-15T09:00:00Z",
                "updatedAt": "2025-05-01T09:00:00Z",
                "failureCount": failures,
            },
        )


_SYNCS: tuple[tuple[str, str, str, str, int, Fields], ...] = (
    (JANE, "justsplit", "2025-06-01T06:00:00Z", "synced", 0, {}),
    (DEMO_USER, "justsplit", "2025-06-02T12:10:00Z", "pending", 2, {}),
    ("user-8", "demos", "2025-05-30T21:00:00Z", "error", 4,
     {"errorMessage": "The app did not answer in time"}),
)  # fmt: skip


def syncs() -> Iterator[tuple[str, Fields]]:
    """How far the data of each user is synchronized."""
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
