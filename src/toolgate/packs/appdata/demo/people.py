"""Demo documents: applications, their users, and what these prefer."""

from collections.abc import Iterator

from toolgate.ports.documents import Fields

JANE = "abc123"
ADMIN = "hub-admin"
DEMO_USER = "user-1"

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


def apps() -> Iterator[tuple[str, Fields]]:
    """The applications."""
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


def users() -> Iterator[tuple[str, Fields]]:
    """Their users; the records of some hold their permissions."""
    yield (
        JANE,
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
    yield ADMIN, {**admin, "isAdmin": True}
    yield DEMO_USER, _demo_user()
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


def permissions_of_jane() -> Iterator[tuple[str, Fields]]:
    """Her entries lie below her record, and reach one app further than its `apps`."""
    yield "hub", _app_permission("hub", "member", "dashboard", "profile")
    yield "justsplit", _app_permission("justsplit", "admin", "dashboard", "export", "settings")
    yield "demos", _app_permission("demos", "moderator", "dashboard", "proposals", "voting")


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


def preferences() -> Iterator[tuple[str, Fields]]:
    """What users prefer."""
    yield JANE, _preference("dark", "en", "en-GB", "EUR", "24h")
    yield DEMO_USER, _preference("auto", "en", "en-US", "USD", "12h")
    yield "user-10", _preference("light", "es", "es-CO", "COP", "12h")
