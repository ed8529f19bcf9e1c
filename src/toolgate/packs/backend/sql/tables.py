"""What every table of pack `backend` shares; each part of the pack has a module for its own.

Text is ordered by code point on both databases, and so compared by bytes.
"""

from sqlalchemy import MetaData, String, Text

from toolgate.db.records import PACK
from toolgate.db.tables import NAMES
from toolgate.packs.backend.pack import BACKEND

metadata = MetaData(naming_convention=NAMES, info={PACK: BACKEND.name})

Words = Text().with_variant(Text(collation="C"), "postgresql")
Id = String(36).with_variant(String(36, collation="C"), "postgresql")
