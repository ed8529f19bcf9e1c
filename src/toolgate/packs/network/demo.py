"""Demo data: a small network of agents, its tasks and skills, and a conversation."""

from toolgate.gate.demo_documents import Document, store_demo
from toolgate.gate.offer import NotForDemo, Site
from toolgate.packs.network.pack import NETWORK
from toolgate.packs.network.world import NetworkWorld
from toolgate.ports.documents import Fields, Json
from toolgate.ports.tree import SetValue

SEEN = "2025-11-03T10:29:30Z"
MADE = "2025-11-03T09:00:00Z"


def _agent(id: str, name: str, type: str, status: str, *capabilities: str) -> Document:
    fields: Fields = {"id": id, "name": name, "type": type, "status": status}
    fields |= {"capabilities": [*capabilities], "maxTasks": 5, "lastSeen": SEEN}
    return "agents", id, fields


def _skill(id: str, name: str, description: str) -> Document:
    fields: Fields = {"id": id, "name": name, "category": id.partition("-")[0]}
    fields |= {"description": description, "version": "1.0.0", "deprecated": False}
    return "skills", id, fields


def _task(id: str, type: str, priority: str, title: str, *needs: str, **more: Json) -> Document:
    fields: Fields = {"id": id, "type": type, "priority": priority, "status": "pending"}
    fields |= {"title": title, "requiredCapabilities": [*needs], "createdAt": MADE, **more}
    return "tasks", id, fields


DOCUMENTS: tuple[Document, ...] = (
    _agent("agent-001", "Research Agent", "researcher", "active", "research", "analysis"),
    _agent("agent-002", "Worker Alpha", "worker", "idle", "coding", "testing"),
    _agent("mission-control", "Mission Control", "coordinator", "active", "planning"),
    _agent("mobile-scout", "Mobile Scout", "scout", "offline", "capture", "navigation"),
    _agent("data-analyst", "Data Analyst", "analyst", "busy", "analysis", "reporting"),
    _skill("core-observation-visual", "Visual Observation", "Describe what is in a picture."),
    _skill("core-communication-message", "Messages", "Write to another agent."),
    _skill("core-data-storage", "Storage", "Keep data, and find it again."),
    _skill("house-kitchen-inventory", "Kitchen Inventory", "Count what is in the kitchen."),
    _skill("house-navigation-room", "Room Navigation", "Find the way from room to room."),
    _skill("science-computation-analysis", "Analysis", "Compute figures from measurements."),
    _skill("meta-learning-pattern", "Patterns", "Learn from what has worked before."),
    _task("task-456", "analysis", "high", "Analyze Network Performance", "analysis"),
    _task("task-457", "inventory", "normal", "Kitchen Inventory Check", "capture"),
    _task("task-458", "review", "normal", "Code Review: MACS Protocol", "coding"),
    _task("task-459", "scan", "low", "Daily House Scan", "capture", dependencies=["task-457"]),
    (
        "messages/conversations/conv-123",
        "msg-001",
        {
            "from": "agent-002",
            "to": "agent-001",
            "message": "The review is done.",
            "timestamp": "2025-11-03T10:20:00Z",
        },
    ),
)
TREE: dict[str, Json] = {
    "presence": {"agent-001": True, "agent-002": True, "mobile-scout": False},
    "config": {"features": {"heartbeat": True}, "global": {"heartbeatSeconds": 20}},
}


async def load(world: NetworkWorld, site: Site) -> int:
    """Store the demo data that is not there yet; return how many records were stored."""
    if not world.tree.joins_transaction:
        raise NotForDemo(
            "The tree of pack network is in a Realtime Database, so no demo data was loaded."
        )
    stored = await store_demo(NETWORK, site, DOCUMENTS)
    if not stored:
        return 0
    async with site.database.transaction() as tx:
        for path, value in TREE.items():
            if await world.tree.get(path, shallow=True) is None:
                await world.tree.write(tx, SetValue(path, value))
                stored += 1
    return stored
