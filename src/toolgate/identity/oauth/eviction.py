"""Room in tables that strangers fill: where there are too many rows, some go.

Whoever has most gives way first, so that nobody's rows can be displaced from elsewhere. Who has one
IPv6 address usually has a whole /48, so that counts as one network.
"""

from ipaddress import IPv6Network, ip_network

from sqlalchemy import ColumnElement, Connection, Table, delete, func, select

NETWORK = 48
"""Bits of an IPv6 address that one site does not choose for itself."""


def network_of(peer: str) -> str:
    """The network a peer is in, as rows are counted."""
    try:
        network = ip_network(peer)
    except ValueError:
        return peer
    wide = isinstance(network, IPv6Network) and network.prefixlen > NETWORK
    return str(network.supernet(new_prefix=NETWORK)) if wide else peer


def make_room(connection: Connection, table: Table, may_go: ColumnElement[bool], most: int) -> None:
    """Delete until one more fits: each time the oldest row of the network that has most."""
    count = func.count()
    networks = select(table.c.network, count.label("many")).where(may_go)
    by_size = networks.group_by(table.c.network).order_by(count.desc())
    sizes = {row.network: row.many for row in connection.execute(by_size)}
    too_many = sum(sizes.values()) - most + 1
    going: dict[str | None, int] = {}
    for _ in range(too_many):
        largest = max(sizes, key=lambda one: sizes[one])
        sizes[largest] -= 1
        going[largest] = going.get(largest, 0) + 1
    for network, many in going.items():
        theirs = table.c.network.is_not_distinct_from(network)
        oldest = select(table.c.id).where(may_go, theirs).order_by(table.c.created_at).limit(many)
        connection.execute(delete(table).where(table.c.id.in_(list(connection.scalars(oldest)))))
