"""How a test outside of a pack's folder says that it needs that pack."""

import pytest

from toolgate import packs


def needs_pack(name: str) -> pytest.MarkDecorator:
    """Mark a test, or all of a module (`pytestmark`), that has no meaning without a pack."""
    reason = f"needs pack {name}, which this tree does not ship"
    return pytest.mark.skipif(name not in packs.SHIPPED, reason=reason)
