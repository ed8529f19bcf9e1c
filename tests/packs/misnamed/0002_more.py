"""Named like another revision than its own."""

revision = "0003"
down_revision = "0001"
