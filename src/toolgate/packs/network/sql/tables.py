"""What every table of pack `network` shares; each part of the pack has a module for its own.

Text is ordered by code point on both databases, and so compared by bytes.
"""

from sqlalchemy import MetaData, Text

from toolgate.db.records import PACK
from toolgate.db.tables import NAMES
from toolgate.packs.network.pack import NETWORK

metadata = MetaData(naming_convention=NAMES, info={PACK: NETWORK.name})

Words = Text().with_variant(Text(collation="C"), "postgresql")
