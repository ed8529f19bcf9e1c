"""What the blobs of artifacts are called: each name is used once, below a folder of the database's.

Two databases may have their blobs in one bucket. The reaper of each looks at its own folder alone,
since to it the blobs of the other would be blobs without a row.
"""

import hashlib
import uuid
from dataclasses import dataclass

from toolgate.gate.cursors import Cursors

FOLDER = "artifacts"
ID_CHARACTERS = 16


@dataclass(frozen=True, slots=True)
class BlobNames:
    """Names below one folder."""

    folder: str
    """With a slash at its end."""

    def new(self) -> str:
        """A name that no other blob has, ever; spread over folders."""
        name = uuid.uuid4().hex
        return f"{self.folder}{name[:2]}/{name}"


def names_of(cursors: Cursors) -> BlobNames:
    """The names of the database whose cursors these are: it alone has the key that signs them."""
    signed = cursors.make((FOLDER,), ())
    own = hashlib.sha256(signed.encode()).hexdigest()[:ID_CHARACTERS]
    return BlobNames(f"{FOLDER}/{own}/")
