"""Demo documents, in the order in which they are created.

Ids are not stored in the fields; the tools add them. Treat the dictionaries as read-only: copy
before changing.
"""

from toolgate.gate.demo_documents import store_demo
from toolgate.gate.offer import NotForDemo, Site
from toolgate.packs.appdata.collections import BUILT_IN
from toolgate.packs.appdata.demo import activity, people
from toolgate.packs.appdata.pack import APPDATA
from toolgate.packs.appdata.world import AppDataWorld
from toolgate.ports.documents import Fields

DEMO: tuple[tuple[str, str, Fields], ...] = tuple(
    (collection, document_id, fields)
    for collection, documents in (
        ("apps", people.apps()),
        ("users", people.users()),
        (f"users/{people.JANE}/permissions", people.permissions_of_jane()),
        ("groups", activity.groups()),
        ("transactions", activity.transactions()),
        ("notifications", activity.notifications()),
        ("permissions", activity.permissions()),
        ("resourcePermissions", activity.resource_permissions()),
        ("permissionLogs", activity.logs()),
        ("friendships", activity.friendships()),
        ("webhookRegistrations", activity.webhooks()),
        ("userPreferences", people.preferences()),
        ("dataSyncStatus", activity.syncs()),
    )
    for document_id, fields in documents
)


async def load_demo(world: AppDataWorld, site: Site) -> int:
    """Store the demo documents that are not there yet; return how many were stored."""
    if world.collections is not BUILT_IN:
        raise NotForDemo(
            "appdata.collections names your own file, so no demo documents were loaded."
        )
    return await store_demo(APPDATA, site, DEMO, BUILT_IN.by_name)
