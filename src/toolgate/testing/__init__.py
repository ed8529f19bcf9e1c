"""The public test kit: a whole gate in a temporary folder, called like the real one.

async with opened_kit(tmp_path, writes=True) as kit:
    outcome = await kit.call("get_document", collection="users", document_id="abc123")
"""

from toolgate.testing.kit import Kit, opened_kit, switched_on

__all__ = ["Kit", "opened_kit", "switched_on"]
